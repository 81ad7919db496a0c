"""Fingerprints of the public numbers of a client mechanism, which reports and counts carry."""

import hashlib
import json
from collections.abc import Mapping
from typing import Any


def fingerprint(identity: Mapping[str, Any]) -> str:
    """Sixteen digits that name a client mechanism with all its public numbers: reports of others are refused.

    Examples
    --------
    >>> fingerprint({"cells": 3, "epsilon": 1.0}) == fingerprint({"epsilon": 1.0, "cells": 3})
    True
    """
    text = json.dumps(identity, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]
