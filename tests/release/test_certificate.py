"""Certificates: what `save` writes holds, and nothing in it can be changed without `verify` noticing."""

import copy
import json
import math
import re
import shutil

import jsonschema
import numpy as np
import pytest
import shapely
from support.forgery import at, failed, put, read, reseal

from dpppsynth.core.errors import InputError, PrivacyCheckError
from dpppsynth.core.published_files import plain_text
from dpppsynth.privacy import AddRemove, AlphaNeighbours, ReplaceOne, catalogue, guarantee_from_dict, verify
from dpppsynth.release import certificate, load_release
from dpppsynth.spatial.domains import Window, canonical_json
from dpppsynth.spatial.patterns import PointPattern
from dpppsynth.synthesizers import LaplaceSynthesizer

WINDOW = Window.rectangle(0, 0, 1000, 1000, "EPSG:27700")
PATTERN = PointPattern(np.random.default_rng(1).uniform(0, 1000, (300, 2)), WINDOW)
TENTS = LaplaceSynthesizer(
    1.0, relation=AlphaNeighbours(25.0, max_points_per_person=2), basis="tents", spacing=200.0, postprocess="plain"
)


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """A private release on disk, never touched."""
    return TENTS.release(PATTERN).save(tmp_path_factory.mktemp("certificate") / "public", patterns=2)


@pytest.fixture
def folder(saved, tmp_path):
    """A copy to spoil."""
    return shutil.copytree(saved, tmp_path / "public")


def leaves(value, path=()):
    """Every scalar and every empty container of a certificate."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    children = [leaf for key, child in items for leaf in leaves(child, (*path, key))]
    return children or [path]


def changed(value):
    match value:
        case bool():
            return not value
        case int() | float():
            return value + 1
        case str():
            return ("1" if value[0] == "0" else "0") + value[1:] if value else "x"
        case _:
            return "x"


class TestHolds:
    @pytest.mark.parametrize("relation", [AlphaNeighbours(25.0), ReplaceOne(2), AddRemove()], ids=repr)
    @pytest.mark.parametrize("basis", ["cells", "tents"])
    def test_what_save_writes(self, relation, basis, tmp_path):
        synthesizer = LaplaceSynthesizer(0.7, relation=relation, basis=basis, spacing=250.0, postprocess="plain")
        folder = synthesizer.release(PATTERN).save(tmp_path / "out")
        cert = read(folder)
        jsonschema.Draft202012Validator(certificate.schema()).validate(cert)
        outcome = verify(folder)
        assert outcome.holds
        outcome.require()
        assert [check.name for check in outcome.checks] == ["content", "files", "randomness", "statistic", "bound"]
        assert outcome.guarantee == guarantee_from_dict(cert["guarantee"])
        assert outcome.guarantee.epsilon() <= 0.7
        assert verify(folder / "certificate.json").holds

    def test_schema_is_itself_valid_and_closed(self):
        schema = certificate.schema()
        jsonschema.Draft202012Validator.check_schema(schema)
        assert set(schema["properties"]) - set(schema["required"]) == {"ledger", "shuffled", "snap"}

    def test_a_polygon_window_with_a_hole(self, tmp_path):
        ring = Window.polygon(shapely.box(0, 0, 1000, 1000).difference(shapely.Point(500, 500).buffer(200)))
        inside = PATTERN.xy[ring.contains(PATTERN.xy)]
        release = LaplaceSynthesizer(1.0, alpha=25.0, basis="tents", spacing=200.0, postprocess="plain").release(
            PointPattern(inside, ring)
        )
        assert verify(release.save(tmp_path / "out")).holds

    def test_two_saves_of_one_release_are_equal_to_the_byte(self, tmp_path):
        """Nothing of the moment, the machine's clock or the folder's name is written."""
        release = TENTS.release(PATTERN)
        first, second = (release.save(tmp_path / name, patterns=2, rng=5) for name in ("first", "second"))
        for path in sorted(first.iterdir()):
            assert path.read_bytes() == (second / path.name).read_bytes()
        assert len(list(first.iterdir())) == len(list(second.iterdir()))
        text = (first / "certificate.json").read_text()
        assert not re.search(r"20\d\d-\d\d|\d\d:\d\d|first", text)

    def test_is_plain_json(self, saved):
        def refuse(constant):
            raise AssertionError(constant)

        json.loads((saved / "certificate.json").read_text(), parse_constant=refuse)
        with pytest.raises(ValueError, match="Out of range"):
            canonical_json({"epsilon": math.nan})

    def test_hash_does_not_depend_on_layout(self, folder):
        cert = read(folder)
        (folder / "certificate.json").write_text(json.dumps(dict(reversed(cert.items())), separators=(" ,", " : ")))
        assert verify(folder).holds

    def test_states_every_public_parameter_and_no_count_of_its_own(self, saved):
        cert = read(saved)
        assert set(cert["parameters"]) == {
            "basis", "mesh", "lattice_bits", "scale", "epsilon", "n", "expected_n", "estimator"
        }  # fmt: skip
        assert cert["guarantee"]["relation"] == {"name": "alpha-neighbours", "max_points_per_person": 2, "alpha": 25.0}
        assert set(cert["files"]) == {p.name for p in saved.iterdir()} - {"certificate.json"}
        assert cert["domain"]["crs"] == "EPSG:27700"
        assert cert["domain"]["unit"] == "metre"
        assert {"dpppsynth", "opendp"} <= set(cert["versions"])
        assert cert["releasable"]
        assert cert["warning"] is None


class TestEdits:
    @pytest.mark.slow
    def test_any_single_field(self, saved, folder):
        original = read(saved)
        paths = leaves(original)
        assert len(paths) > 100
        for path in paths:
            cert = put(original, path, changed(at(original, path)))
            (folder / "certificate.json").write_text(json.dumps(cert))
            try:
                assert "content" in failed(folder), path
            except InputError:
                closed = {"schema_version", "content_hash", "guarantee", "domain", "files", "warning", "noise"}
                assert path[0] in closed, path

    @pytest.mark.parametrize("key", ["warning", "noise", "versions", "parameters", "files"])
    def test_a_field_left_out(self, folder, key):
        cert = read(folder)
        del cert[key]
        reseal(folder, cert)
        with pytest.raises(InputError, match=r"is not a certificate of version 1 \(at top level: required\)"):
            verify(folder)

    def test_a_field_put_in(self, folder):
        cert = read(folder) | {"approved_by": "somebody"}
        reseal(folder, cert)
        with pytest.raises(InputError, match="additionalProperties"):
            verify(folder)

    def test_a_field_said_twice(self, folder):
        """JSON readers take the last of two equal keys, people the first."""
        path = folder / "certificate.json"
        path.write_text(path.read_text().replace('"epsilon":', '"epsilon": 0.001, "epsilon":'))
        with pytest.raises(InputError, match="certificate: cannot read"):
            verify(folder)

    @pytest.mark.parametrize(
        ("path", "value"),
        [
            (("guarantee", "profile", "epsilon"), 0.5),
            (("guarantee", "profile", "delta"), 0.5),
            (("guarantee", "relation", "alpha"), 50.0),
            (("guarantee", "relation", "max_points_per_person"), 4),
            (("guarantee", "relation", "max_points_per_person"), 1),
            (("guarantee", "relation"), {"name": "replace-one", "max_points_per_person": 2}),
            (("guarantee", "relation"), {"name": "add-remove", "max_points_per_person": 2}),
            (("guarantee", "theorem"), "counts"),
            (("guarantee", "assumes"), ["one-release"]),
            (("guarantee", "by_distance"), []),
            (("parameters", "scale"), 1.0),
            (("parameters", "scale"), 0),
            (("parameters", "scale"), -1.0),
            (("parameters", "scale"), "wide"),
            (("parameters", "scale"), None),
            (("parameters", "lattice_bits"), 0),
            (("parameters", "lattice_bits"), 19),
            (("parameters", "lattice_bits"), 21),
            (("parameters", "lattice_bits"), "20"),
            (("parameters", "lattice_bits"), 5000),
            (("parameters", "mesh", "shape"), [7, 7]),
            (("parameters", "mesh", "shape"), [5, 6]),
            (("parameters", "mesh", "shape"), []),
            (("parameters", "mesh", "shape"), ["a", "b"]),
            (("parameters", "mesh", "kind"), "square"),
            (("parameters", "mesh", "builder"), "imagined"),
            (("parameters", "mesh"), {}),
            (("parameters", "mesh"), None),
            (("parameters", "mesh"), "regular"),
            (("parameters", "mesh"), {"builder": "arrays", "vertices": [[0, 0], [1, 1]], "elements": [[0, 1, 9]]}),
            (("parameters", "epsilon"), 0.01),
            (("parameters", "epsilon"), 5.0),
            (("parameters", "basis"), "cells"),
            (("parameters",), {}),
            (("mechanism",), "laplace-cells"),
            (("mechanism",), "perfect"),
            (("domain", "unit"), "kilometre"),
            (("domain", "crs"), None),
            (("domain", "crs"), "EPSG:2223"),
            (("domain", "fingerprint"), "0" * 64),
        ],
        ids=lambda value: "/".join(value) if isinstance(value, tuple) else str(value)[:30],
    )
    def test_with_the_hash_made_again_the_bound_does_not_follow(self, folder, path, value):
        reseal(folder, put(read(folder), path, value))
        assert "bound" in failed(folder)

    def test_a_smaller_epsilon_said_everywhere_still_needs_more_noise(self, folder):
        """Claim, budget and words agree with each other; the scale does not."""
        cert = read(folder)
        cert["guarantee"]["profile"]["epsilon"] = cert["parameters"]["epsilon"] = 0.5
        reseal(folder, cert)
        outcome = verify(folder)
        assert [check.name for check in outcome.checks if not check.holds] == ["bound"]
        assert re.search(r"parameters: scale = [\d.]+ follows from the others", outcome.checks[-1].detail)

    def test_an_assumption_taken_away(self, folder):
        for i in range(len(read(folder)["guarantee"]["assumes"])):
            cert = read(folder)
            kept = cert["guarantee"]["assumes"]
            gone = kept.pop(i)
            reseal(folder, cert)
            assert failed(folder) == {"bound"}, gone
            kept.insert(i, gone)
            reseal(folder, cert)
            assert not failed(folder)

    def test_a_cap_lowered_with_the_assumptions_that_go_with_it(self, folder):
        cert = read(folder)
        cert["guarantee"]["relation"]["max_points_per_person"] = 1
        cert["guarantee"] = guarantee_from_dict(cert["guarantee"]).to_dict()
        reseal(folder, cert)
        assert "bound" in failed(folder)

    def test_secret_n_is_never_stated_and_public_n_always(self, folder, tmp_path):
        cert = read(folder)
        cert["parameters"]["n"] = None
        reseal(folder, cert)
        assert failed(folder) == {"bound"}
        secret = (
            LaplaceSynthesizer(1.0, relation=AddRemove(), spacing=250.0, postprocess="plain")
            .release(PATTERN)
            .save(tmp_path / "secret")
        )
        cert = read(secret)
        cert["parameters"]["n"] = 300
        reseal(secret, cert)
        assert failed(secret) == {"bound"}

    @pytest.mark.parametrize("profile", [{"kind": "gaussian", "epsilon": 1.0, "delta": 0.0}, {"kind": "pure"}])
    def test_profiles_of_other_versions_are_no_certificate_of_this_one(self, folder, profile):
        cert = read(folder)
        cert["guarantee"]["profile"] = profile
        reseal(folder, cert)
        with pytest.raises(InputError, match="is not a certificate of version 1"):
            verify(folder)

    def test_alpha_neighbours_need_their_alpha(self, folder):
        cert = read(folder)
        del cert["guarantee"]["relation"]["alpha"]
        reseal(folder, cert)
        with pytest.raises(InputError, match="is not a certificate of version 1"):
            verify(folder)


class TestFiles:
    @pytest.mark.parametrize(
        "name", ["domain.geojson", "statistic.json", "synthetic_000.geojson", "synthetic_001.geojson"]
    )
    def test_changed_or_missing(self, folder, name):
        content = (folder / name).read_bytes()
        (folder / name).write_bytes(content + b" ")
        outcome = verify(folder)
        check = next(c for c in outcome.checks if c.name == "files")
        assert not check.holds
        assert check.detail == f"missing or changed: {name}."
        (folder / name).unlink()
        assert "files" in failed(folder)
        with pytest.raises(PrivacyCheckError, match=rf"certificate does not hold\. files: missing or changed: {name}"):
            verify(folder).require()

    def test_domain_swapped_for_another_and_hashed_again(self, folder):
        """A larger window with the same mesh shape has larger elements, hence a smaller bound."""
        other = Window.rectangle(0, 0, 2000, 2000, "EPSG:27700")
        (folder / "domain.geojson").write_text(plain_text(other.to_geojson()))
        assert {"files", "bound"} <= failed(folder)
        cert = read(folder)
        cert["files"]["domain.geojson"] = certificate.file_hash(folder / "domain.geojson")
        reseal(folder, cert)
        assert failed(folder) == {"bound"}
        cert["domain"]["fingerprint"] = other.fingerprint()
        reseal(folder, cert)
        assert failed(folder) == {"bound"}

    def test_domain_pointing_at_another_file(self, folder):
        cert = read(folder)
        cert["domain"]["file"] = "synthetic_000.geojson"
        reseal(folder, cert)
        with pytest.raises(InputError, match=r"\(at domain/file: const\)"):
            verify(folder)

    def test_domain_must_be_among_the_files(self, folder):
        cert = read(folder)
        del cert["files"]["domain.geojson"]
        reseal(folder, cert)
        assert failed(folder) == {"files"}

    @pytest.mark.parametrize(
        "name", ["../secret.csv", "/etc/passwd", "a/b.geojson", "..", ".hidden", "a\\b", "", "C:x", "con\n", "é.json"]
    )
    def test_names_that_leave_the_folder_are_refused(self, folder, name):
        honest = read(folder)
        for where in ("domain", "files"):
            cert = copy.deepcopy(honest)
            cert[where].update({"file": name} if where == "domain" else {name: "0" * 64})
            reseal(folder, cert)
            # A pattern's $ may match before a final line break; then the file is missing.
            if (where, name) == ("files", "con\n"):
                assert "files" in failed(folder)
                continue
            with pytest.raises(InputError, match="is not a certificate of version 1"):
                verify(folder)


class TestSeeded:
    @pytest.fixture
    def seeded(self, tmp_path):
        return TENTS.release(PATTERN, rng=1).save(tmp_path / "seeded")

    def test_says_so_and_does_not_hold(self, seeded):
        cert = read(seeded)
        assert cert["seeded"]
        assert not cert["releasable"]
        assert cert["warning"] == certificate.SEEDED
        assert cert["noise"].startswith("seeded-")
        assert "randomness" in failed(seeded)
        with pytest.raises(PrivacyCheckError, match=re.escape(catalogue.text(certificate.SEEDED))):
            verify(seeded).require()

    @pytest.mark.parametrize("field", ["seeded", "releasable"])
    def test_one_flag_alone_does_not_help(self, seeded, field):
        cert = read(seeded)
        cert[field] = not cert[field]
        reseal(seeded, cert)
        assert "randomness" in failed(seeded)

    def test_still_loads_marked(self, seeded):
        assert load_release(seeded).seeded


class TestUnreadable:
    @pytest.mark.parametrize(
        ("text", "reason"),
        [
            ("", "not JSON"),
            ("epsilon = 1", "not JSON"),
            ("[" * 100_000, "not JSON"),
            ("\udcff", "not JSON"),
            ('{"schema_version": NaN}', "not JSON"),
            ("[]", "is not a certificate of version 1"),
            ("{}", "is not a certificate of version 1"),
            ('{"schema_version": 2}', "is not a certificate of version 1"),
            ("null", "is not a certificate of version 1"),
        ],
        ids=lambda value: value[:20].encode("ascii", "replace").decode(),
    )
    def test_is_bad_input(self, tmp_path, text, reason):
        (tmp_path / "certificate.json").write_bytes(text.encode("utf-8", "surrogateescape"))
        with pytest.raises(InputError, match=reason) as caught:
            verify(tmp_path)
        assert str(caught.value).startswith("certificate: ")

    def test_numbers_that_json_does_not_know(self, folder):
        path = folder / "certificate.json"
        cert = read(folder)
        cert["parameters"]["scale"] = math.nan
        path.write_text(json.dumps(cert))
        with pytest.raises(InputError, match="not JSON"):
            verify(folder)

    def test_missing(self, tmp_path):
        for path in (tmp_path, tmp_path / "none", tmp_path / "none" / "certificate.json"):
            with pytest.raises(InputError, match=r"^certificate: cannot read .*: No such file or directory\.$"):
                verify(path)

    def test_other_schema_version(self, folder):
        cert = read(folder)
        cert["schema_version"] = 2
        reseal(folder, cert)
        with pytest.raises(InputError, match=r"version 1 \(at schema_version: const\)"):
            verify(folder)


class TestForgeries:
    """Claims that do not follow, with every hash made again by the forger."""

    @pytest.mark.parametrize(
        ("path", "value"),
        [
            ("parameters/lattice_bits", -5),
            ("parameters/lattice_bits", 21),
            ("parameters/lattice_bits", 0.5),
            ("parameters/scale", 1e-12),
            ("parameters/n", "lots"),
            ("parameters/n", 0),
            ("noise", "none-at-all"),
            ("noise", "seeded-discrete-laplace"),
            ("warning", "large-delta"),
        ],
    )
    def test_a_field(self, folder, path, value):
        reseal(folder, put(read(folder), path.split("/"), value))
        assert failed(folder)

    def test_an_assumption_of_their_own(self, folder):
        cert = read(folder)
        said = cert["guarantee"]
        said["assumes"].append("not-empty")
        reseal(folder, cert)
        assert failed(folder) == {"bound"}

    @pytest.mark.parametrize(
        "change",
        [
            lambda statistic: statistic | {"seeded": True},
            lambda statistic: statistic | {"noise": "none"},
            lambda statistic: statistic | {"lattice": statistic["lattice"][1:]},
            lambda statistic: statistic | {"lattice": [float(v) for v in statistic["lattice"]]},
            lambda statistic: [],
        ],
        ids=["seeded", "other noise", "one number short", "no integers", "nothing"],
    )
    def test_another_statistic(self, folder, change):
        path = folder / "statistic.json"
        path.write_text(plain_text(change(json.loads(path.read_text()))))
        cert = read(folder)
        cert["files"]["statistic.json"] = certificate.file_hash(path)
        reseal(folder, cert)
        assert failed(folder) == {"statistic"}
        with pytest.raises(PrivacyCheckError):
            load_release(folder)

    def test_a_profile_of_their_own(self, folder):
        cert = read(folder)
        said = cert["guarantee"]
        said["profile"]["epsilon"] *= 0.9
        reseal(folder, cert)
        assert failed(folder) == {"bound"}

    def test_the_noise_of_another_mechanism_wherever_it_is_stated(self, folder):
        path, cert = folder / "statistic.json", read(folder)
        cert["noise"] = cert["noise"].replace("laplace", "gaussian")
        path.write_text(path.read_text().replace("laplace", "gaussian"))
        cert["files"]["statistic.json"] = certificate.file_hash(path)
        reseal(folder, cert)
        assert failed(folder) == {"content"}

    def test_no_statistic_among_the_files(self, folder):
        cert = read(folder)
        del cert["files"]["statistic.json"]
        reseal(folder, cert)
        assert failed(folder) == {"files"}
