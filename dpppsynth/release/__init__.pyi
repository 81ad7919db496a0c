from dpppsynth.release.cox import CoxRelease as CoxRelease
from dpppsynth.release.cox import CredibleInterval as CredibleInterval
from dpppsynth.release.folder import load_release as load_release
from dpppsynth.release.folder_writing import append_patterns as append_patterns
from dpppsynth.release.intensity_files import write_intensity as write_intensity
from dpppsynth.release.release import Release as Release
from dpppsynth.release.stratified_release import StratifiedRelease as StratifiedRelease
