from dpppsynth.mechanisms.local.client import Client as Client
