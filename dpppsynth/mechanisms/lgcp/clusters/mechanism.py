"""Record of the log-Gaussian Cox mechanism with clusters."""

from dpppsynth.contract.audits import masses_and_pairs
from dpppsynth.contract.mechanism import Mechanism
from dpppsynth.mechanisms.lgcp import examples
from dpppsynth.mechanisms.lgcp.clusters import words
from dpppsynth.mechanisms.lgcp.clusters.clustered_release import ClusteredRelease
from dpppsynth.mechanisms.lgcp.clusters.statistic import MassesAndPairs
from dpppsynth.mechanisms.lgcp.synthesizer import LGCPSynthesizer
from dpppsynth.release.lgcp_inference import LGCPInference
from dpppsynth.release.matern_inference import MaternInference
from dpppsynth.release.precision_inference import PrecisionInference
from dpppsynth.release.street_inference import StreetInference

CLUSTERS = Mechanism(
    name="lgcp-clusters",
    settings=LGCPSynthesizer,
    plan=MassesAndPairs,
    estimators=(LGCPInference, MaternInference, StreetInference, PrecisionInference),
    result=ClusteredRelease,
    audit=masses_and_pairs,
    words=words.CLUSTERS,
    examples=examples.clusters,
)
