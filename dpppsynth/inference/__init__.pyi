from dpppsynth.inference.field_inference import Posterior as Posterior
from dpppsynth.inference.lgcp_inference import LGCPInference as LGCPInference
from dpppsynth.inference.matern_inference import MaternInference as MaternInference
from dpppsynth.inference.projection import Projection as Projection
from dpppsynth.inference.street_inference import StreetInference as StreetInference
