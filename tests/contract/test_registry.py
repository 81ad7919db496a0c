"""The registry: complete records, loaded when asked for, and unknown mechanisms refused by name."""

import inspect
import json
import subprocess
import sys
from dataclasses import fields
from pathlib import Path

import pytest

from dpppsynth.contract import registry
from dpppsynth.contract.estimator import Estimator
from dpppsynth.contract.registry import Mechanism
from dpppsynth.contract.release_plan import ReleasePlan
from dpppsynth.contract.statistic import Statistic
from dpppsynth.contract.stratified_plan import STRATA
from dpppsynth.core.errors import InputError
from dpppsynth.ledger import Ledger
from dpppsynth.models.recipes import domain_of_release
from dpppsynth.privacy import ReplaceOne
from dpppsynth.privacy.guarantee import ApproximateDP, Guarantee, PureDP, guarantee_from_dict
from dpppsynth.release.cox import CoxRelease
from dpppsynth.release.rederive import rederive, same_values, spends
from dpppsynth.release.verify import _check_bound
from dpppsynth.spatial.domains import Window
from dpppsynth.spatial.patterns import PointPattern
from dpppsynth.synthesizers import LaplaceSynthesizer, Synthesizer

STORED = Path(__file__).parents[1] / "data" / "releases"
SQUARE = Window.rectangle(0, 0, 1000, 1000)


def parts(cert):
    """Mechanism and public parameters of a release, or of each of its levels."""
    return (
        [(part["mechanism"], part["parameters"]) for part in cert["parameters"]["strata"]]
        if cert["mechanism"] == STRATA
        else [(cert["mechanism"], cert["parameters"])]
    )


@pytest.mark.parametrize("name", registry.names())
def test_records_are_complete(name):
    record = registry.mechanism(name)
    assert record.name == name
    assert issubclass(record.settings, Synthesizer)
    assert issubclass(record.statistic, Statistic)
    assert record.statistic.from_parameters.__func__ is not Statistic.from_parameters.__func__
    assert record.statistic.form
    assert record.statistic.apply_noise is Statistic.apply_noise, "conformance looks at what passes through here"
    for estimator in record.estimators:
        assert issubclass(estimator, Estimator)
        assert estimator.from_dict.__func__ is not Estimator.from_dict.__func__
        assert record.estimator(estimator.kind) is estimator
    with pytest.raises(InputError, match="the estimator is"):
        record.estimator("no-such")


@pytest.mark.parametrize("name", registry.names())
def test_settings_after_epsilon_have_names(name):
    """A budget in second place was delta for one mechanism and alpha for the next."""
    taken = inspect.signature(registry.mechanism(name).settings).parameters.values()
    places = [each.name for each in taken if each.kind is not inspect.Parameter.KEYWORD_ONLY]
    assert places in ([], ["epsilon"], ["window"])


def test_every_field_is_required():
    whole = registry.mechanism("laplace-cells")
    given = {each.name: getattr(whole, each.name) for each in fields(Mechanism)}
    assert Mechanism(**given).name == "laplace-cells"
    for name in given:
        with pytest.raises(TypeError, match=name):
            Mechanism(**{key: value for key, value in given.items() if key != name})


@pytest.mark.parametrize("name", ["lgcp", "Laplace-cells", "", None, 3, STRATA])
def test_unknown_mechanisms_are_refused_by_name(name):
    assert not registry.is_known(name)
    with pytest.raises(InputError, match=f"^mechanism: {name!r} is not known to this version; it has laplace-cells, "):
        registry.mechanism(name)


def test_a_plan_of_an_unknown_mechanism_spends_nothing():
    plan = LaplaceSynthesizer(1.0, alpha=25.0, postprocess="plain").plan(SQUARE, n=2)
    with pytest.raises(InputError, match=r"^mechanism: 'no-such' is not known"):
        ReleasePlan("no-such", plan.statistic, plan.estimator).release(PointPattern([[1, 2], [3, 4]], SQUARE))
    with pytest.raises(InputError, match=r"^mechanism: 'no-such' is not known"):
        ReleasePlan("no-such", plan.statistic, plan.estimator)


def test_a_plan_of_another_mechanism_spends_nothing(tmp_path):
    made = LaplaceSynthesizer(1.0, alpha=25.0, postprocess="plain").plan(SQUARE, n=2)
    ledger = Ledger.create(tmp_path / "ledger.json", epsilon=1.0, delta=0.0, relation=made.guarantee.relation)
    with pytest.raises(
        InputError, match=r"^mechanism: heatmap spends its budget on a HeatmapStatistic, got a LaplaceMasses"
    ):
        ReleasePlan("heatmap", made.statistic, made.estimator).release(
            PointPattern([[1, 2], [3, 4]], SQUARE), ledger=ledger
        )
    assert ledger.spent == 0
    made = LaplaceSynthesizer(1.0, alpha=25.0, basis="cells", postprocess="plain").plan(SQUARE, n=2)
    for other in ("laplace-tents", "lgcp-tents"):
        with pytest.raises(InputError, match=f"^mechanism: {other} spends its budget on a LaplaceMasses, got one of"):
            ReleasePlan(other, made.statistic, made.estimator).release(
                PointPattern([[1, 2], [3, 4]], SQUARE), ledger=ledger
            )
        assert ledger.spent == 0


def test_no_release_is_made_of_an_unknown_mechanism():
    release = LaplaceSynthesizer(1.0, alpha=25.0, postprocess="plain").release(PointPattern([[1, 2], [3, 4]], SQUARE))
    with pytest.raises(InputError, match=r"^mechanism: 'no-such' is not known"):
        CoxRelease("no-such", release.statistic, release.estimator)


@pytest.mark.slow
def test_registry_and_package_load_no_family():
    code = (
        "import sys, dpppsynth, dpppsynth.contract.registry as registry; registry.names(); "
        "print([name for name in sys.modules if name.startswith('dpppsynth.mechanisms')])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", sorted(path.name for path in STORED.iterdir() if path.is_dir()))
def test_plans_are_made_again_from_their_parameters(name):
    """From a certificate to a plan and back, with the guarantee that is claimed."""
    cert = json.loads((STORED / name / "certificate.json").read_text(encoding="utf-8"))
    written = json.loads((STORED / name / cert["domain"]["file"]).read_text(encoding="utf-8"))
    domain, claimed = (
        domain_of_release(written, cert["domain"]["scale_factor"]),
        guarantee_from_dict(cert["guarantee"]),
    )
    for mechanism, stated in parts(cert):
        record = registry.mechanism(mechanism)
        plan = record.statistic.from_parameters(stated, claimed.relation, domain, mechanism=mechanism)
        own = {key: value for key, value in stated.items() if key != "estimator"}
        assert same_values(own, plan.parameters())
        assert plan.guarantee.epsilon() <= claimed.epsilon() * (1 + 1e-9)
        assert plan.guarantee.theorem == claimed.theorem or cert["mechanism"] == STRATA


def test_parameters_of_no_mechanism_are_refused():
    cert = json.loads((STORED / "lgcp-lipschitz" / "certificate.json").read_text(encoding="utf-8"))
    written = json.loads((STORED / "lgcp-lipschitz" / cert["domain"]["file"]).read_text(encoding="utf-8"))
    domain = domain_of_release(written, cert["domain"]["scale_factor"])
    claim = cert["mechanism"], cert["parameters"], guarantee_from_dict(cert["guarantee"]).relation, domain
    assert rederive(*claim).guarantee.epsilon() > 0
    cert["parameters"]["remark"] = "harmless"
    with pytest.raises(InputError, match=r"exactly .* are stated"):
        rederive(*claim)


class TestBudget:
    """The budget that is stated is what is spent."""

    @pytest.mark.parametrize(
        ("profile", "stated", "spent"),
        [
            (PureDP(1.0), {"epsilon": 1.0}, True),
            (PureDP(1.0), {"epsilon": 1.001}, False),
            (PureDP(1.0), {"epsilon": 0.999}, False),
            (PureDP(1.0), {"epsilon": 1.0, "delta": 1e-6}, False),
            (ApproximateDP(1.0, 1e-6), {"epsilon": 1.0, "delta": 1e-6}, True),
            (ApproximateDP(1.0, 1e-6), {"epsilon": 1e29, "delta": 1e-6}, False),
            (ApproximateDP(1.0, 1e-6), {"epsilon": 1.0, "delta": 1.001e-6}, False),
        ],
    )
    def test_more_or_less_than_is_spent(self, profile, stated, spent):
        assert spends(Guarantee(ReplaceOne(), profile, "counts", ()), stated) is spent

    @staticmethod
    def stored(name):
        """Certificate of a stored release, and the relation and domain that it states."""
        cert = json.loads((STORED / name / "certificate.json").read_text(encoding="utf-8"))
        written = json.loads((STORED / name / cert["domain"]["file"]).read_text(encoding="utf-8"))
        domain = domain_of_release(written, cert["domain"]["scale_factor"])
        return cert, guarantee_from_dict(cert["guarantee"]).relation, domain

    def test_is_compared_with_what_the_parameters_give(self):
        """Also where a plan takes the stated budget as it is."""
        cert, relation, domain = self.stored("laplace-tents")
        derived = rederive(cert["mechanism"], cert["parameters"], relation, domain)
        assert _check_bound(cert, derived).holds
        cert["parameters"]["epsilon"] *= 1.001
        assert not _check_bound(cert, derived).holds

    def test_of_all_levels(self, monkeypatch):
        cert, relation, domain = self.stored("strata")
        assert rederive(STRATA, cert["parameters"], relation, domain)
        monkeypatch.setattr("dpppsynth.release.rederive.spends", lambda *_: False)
        with pytest.raises(InputError, match="all of one kind and budget"):
            rederive(STRATA, cert["parameters"], relation, domain)
