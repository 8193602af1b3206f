"""The plan of a mirror: carried out on a model of the target, it makes it like the source."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from xftp.client.mirroring import (
    FileFacts,
    Move,
    Plan,
    Reason,
    Removal,
    Rules,
    Tree,
    is_safe,
    parents,
    plan,
    to_compare,
    without_times,
)

NAMES = st.sampled_from(["a", "b", "c", "\udce4", " x", "-y"])
PATHS = st.lists(NAMES, min_size=1, max_size=3).map("/".join)
FACTS = st.builds(
    FileFacts, st.integers(0, 3), st.floats(1e9, 1e9 + 3) | st.sampled_from([1e9, 1e9 + 1])
)


@st.composite
def trees(draw: st.DrawFn) -> Tree:
    """Draw a tree without contradictions: every parent is a directory, every path one thing."""
    tree = Tree()
    kinds = draw(st.dictionaries(PATHS, st.sampled_from(["file", "dir", "other"]), max_size=8))
    for path, kind in kinds.items():
        above = list(parents(path))
        taken = tree.files.keys() | tree.others
        if tree.kind(path) is not None or any(each in taken for each in above):
            continue
        tree.directories.update(above)
        if kind == "file":
            tree.files[path] = draw(FACTS)
        elif kind == "dir":
            tree.directories.add(path)
        else:
            tree.others.add(path)
    return tree


class Model:
    """A target that refuses what a disk would refuse."""

    def __init__(self, tree: Tree) -> None:
        self.files = dict(tree.files)
        self.directories = set(tree.directories)
        self.others = set(tree.others)

    def carry_out(self, work: Plan) -> None:
        for removal in work.replacements:
            self.remove(removal)
        for path in work.directories:
            self._check_place(path)
            assert path not in self.directories
            self.directories.add(path)
        for move in work.moves:
            self._check_place(move.path)
            assert move.path not in self.directories
            self.files[move.path] = move.facts
        for removal in work.removals:
            self.remove(removal)

    def remove(self, removal: Removal) -> None:
        if removal.is_directory:
            everything = (*self.files, *self.directories, *self.others)
            assert not [path for path in everything if path.startswith(removal.path + "/")]
            self.directories.remove(removal.path)
        elif removal.path in self.others:
            self.others.remove(removal.path)
        else:
            del self.files[removal.path]

    def _check_place(self, path: str) -> None:
        assert path not in self.others
        assert all(parent in self.directories for parent in parents(path))


@given(source=trees(), target=trees())
def test_with_delete_the_target_becomes_the_source(source: Tree, target: Tree) -> None:
    work = plan(source, target, Rules(delete=True))
    assert not work.conflicts
    model = Model(target)
    model.carry_out(work)
    # What the source has as a link is not copied, and what the target has in its place is left.
    left = {path for path in source.others if target.kind(path) is not None}
    assert model.directories - left == source.directories
    assert model.files.keys() - left == source.files.keys()
    for path, facts in source.files.items():
        assert model.files[path].size == facts.size
        assert int(model.files[path].modified or 0) == int(facts.modified or 0)
    assert model.others <= source.others
    assert work.unchanged + len(work.moves) == len(source.files)


@given(source=trees(), target=trees())
def test_without_delete_nothing_is_removed(source: Tree, target: Tree) -> None:
    work = plan(source, target, Rules())
    assert not work.replacements
    assert not work.removals
    model = Model(target)
    model.carry_out(work)
    assert target.files.keys() <= model.files.keys()
    assert target.directories <= model.directories
    blocked = work.conflicts.keys()
    for path in source.files:
        if path not in blocked and not any(parent in blocked for parent in parents(path)):
            assert model.files[path].size == source.files[path].size


@given(tree=trees(), delete=st.booleans())
def test_what_is_the_same_is_left(tree: Tree, delete: bool) -> None:
    assert plan(tree, tree, Rules(delete=delete)) == Plan(unchanged=len(tree.files))


@given(source=trees(), target=trees(), lost=PATHS)
def test_what_could_not_be_read_is_not_taken_for_missing(
    source: Tree, target: Tree, lost: str
) -> None:
    source.unreadable[lost] = OSError()
    work = plan(source, target, Rules(delete=True))
    assert not work.removals
    assert not work.replacements


@given(source=trees(), target=trees(), kept=PATHS)
def test_a_directory_with_something_left_out_stays(source: Tree, target: Tree, kept: str) -> None:
    target.partial.add(kept)
    work = plan(source, target, Rules(delete=True))
    removed = {each.path for each in (*work.replacements, *work.removals)}
    assert not removed & {kept, *parents(kept)} & target.directories


def only(facts: FileFacts) -> Tree:
    return Tree(files={"f": facts})


@pytest.mark.parametrize(
    ("ours", "theirs", "keeps", "reason"),
    [
        ((5, 100.9), (5, 100.0), True, None),
        ((5, 100.0), (5, 99.9), True, Reason.TIME),
        ((5, 100.0), (5, 200.0), True, Reason.TIME),
        ((5, 100.0), (5, 200.0), False, None),
        ((5, 300.0), (5, 200.0), False, Reason.TIME),
        ((5, None), (5, 200.0), True, None),
        ((6, 100.0), (5, 100.0), True, Reason.SIZE),
        ((None, 100.0), (None, 100.0), True, Reason.SIZE),
    ],
)
def test_what_counts_as_changed(
    ours: tuple[int | None, float | None],
    theirs: tuple[int | None, float | None],
    keeps: bool,
    reason: Reason | None,
) -> None:
    facts = FileFacts(*ours)
    work = plan(only(facts), only(FileFacts(*theirs)), Rules(keeps_times=keeps))
    assert work.moves == ([] if reason is None else [Move("f", facts, reason)])


@pytest.mark.parametrize("differs", [True, False])
def test_contents_count_more_than_times(differs: bool) -> None:
    source, target = only(FileFacts(5, 1.0)), only(FileFacts(5, 2.0))
    assert to_compare(source, target) == ["f"]
    work = plan(source, target, Rules(checksum=True), ["f"] if differs else [])
    assert [move.reason for move in work.moves] == ([Reason.CONTENT] if differs else [])


def test_a_time_is_asked_for_only_where_it_decides() -> None:
    source = Tree(files={"same": FileFacts(5, 1.0), "other": FileFacts(5, 1.0)})
    target = Tree(files={"same": FileFacts(5, None), "other": FileFacts(6, None)})
    assert without_times(source, target) == ["same"]


@pytest.mark.parametrize(
    "path",
    ["", "..", "a/../b", "a//b", "/a", "a\rb", "a\nb", "a\0b", "\udcff", "/".join("a" * 201)],
)
def test_names_that_are_refused(path: str) -> None:
    assert not is_safe(path)


@pytest.mark.parametrize("path", [" a", "a b/c", "\udce4", "...", "-", "ÿ"])
def test_names_that_are_taken(path: str) -> None:
    assert is_safe(path)
