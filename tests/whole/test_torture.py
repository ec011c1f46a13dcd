"""A run is killed again and again at random moments, or the power fails, and it ends as if it had been left alone."""

import os
import random
import signal
import stat
import time
from pathlib import Path

import pytest

from pellucid.checkpoint import RunFolder
from pellucid.train import Saved, resume, train
from tests.train.small_run import Heard, cut_short, small_request, stop_after, train_small
from tests.whole.test_stop_and_resume import assert_equal

STEPS = {"steps": 60, "evaluations": 20, "model": {"dropout": 0.3}, "micro_batch_size": 3, "ema": 0.9}


@pytest.fixture(autouse=True)
def _nothing_takes_long(monkeypatch):
    cut_short(monkeypatch)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="a process that can be killed is forked")
def test_sixty_steps_killed_thirty_times_end_the_same(tmp_path):
    train_small(tmp_path / "alone", **STEPS)
    draw, folder, begun = random.Random(0), tmp_path / "run", time.monotonic()
    train_small(folder, watch=stop_after(60), **STEPS)
    whole_seconds = time.monotonic() - begun
    for path in sorted(folder.rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    folder.rmdir()
    for _ in range(30):
        child = os.fork()
        if child == 0:  # nothing of pytest's may run in here
            try:
                train(small_request(folder, **STEPS), Heard())
            finally:
                os._exit(0)
        time.sleep(draw.uniform(0, whole_seconds / 8))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        if (folder / "run.json").exists():
            for path in (folder / "checkpoints").glob("step-*"):
                RunFolder.open(folder).load_checkpoint(path)  # what bears a name is whole
    train(small_request(folder, **STEPS), Heard())
    assert_equal(RunFolder.open(folder), RunFolder.open(tmp_path / "alone"))


class Disk:
    """What a power cut would leave: files as they were when they were last forced to the disk, where their folders say.

    A file that was never forced is there and empty; a name that its folder was not forced with is not there.
    """

    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.root, self.contents, self.folders = root, {}, {}
        fsync = os.fsync

        def forced(fd):
            fsync(fd)
            path = Path(os.readlink(f"/proc/self/fd/{fd}"))
            if stat.S_ISDIR(os.fstat(fd).st_mode):
                self.folders[os.fstat(fd).st_ino] = {
                    entry.name: (entry.inode(), entry.is_dir()) for entry in os.scandir(path)
                }
            else:
                self.contents[os.fstat(fd).st_ino] = path.read_bytes()

        monkeypatch.setattr(os, "fsync", forced)

    def after_a_power_cut(self, to: Path) -> Path:
        """The root folder, as it is found when the power is back."""
        self._restore(self.root.stat().st_ino, to)
        return to

    def _restore(self, inode: int, to: Path) -> None:
        to.mkdir()
        for name, (child, is_folder) in self.folders.get(inode, {}).items():
            if is_folder:
                self._restore(child, to / name)
            else:
                (to / name).write_bytes(self.contents.get(child, b""))


@pytest.mark.skipif(not os.path.exists("/proc/self/fd"), reason="the system does not say what a descriptor stands for")
@pytest.mark.parametrize("moment", [1, 2, 3])
def test_after_a_power_cut_the_run_goes_on_from_its_newest_checkpoint(tmp_path, monkeypatch, moment):
    changes = {"steps": 6, "evaluations": 3}
    train_small(tmp_path / "alone", **changes)
    (tmp_path / "disk").mkdir()
    disk = Disk(tmp_path / "disk", monkeypatch)
    disk.folders[(tmp_path / "disk").stat().st_ino] = {}

    class Cut(Heard):
        def __call__(self, event):
            self.append(event)
            if isinstance(event, Saved) and len(self.of(Saved)) == moment:
                raise SystemExit

    with pytest.raises(SystemExit):
        train(small_request(tmp_path / "disk" / "run", **changes), Cut())
    found = disk.after_a_power_cut(tmp_path / "found") / "run"
    assert RunFolder.open(found).load_checkpoint(RunFolder.open(found).latest_checkpoint()).step == 2 * moment
    resume(found, Heard())
    assert_equal(RunFolder.open(found), RunFolder.open(tmp_path / "alone"))
