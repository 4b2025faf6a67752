"""A folder that looks like the whole disk, and in which nothing that is written reaches it.

    view = FolderView(scratch / "disk")
    folder = view.enter("/home/me/project")      # scratch/disk/home/me/project
    view.own("models/last.pt")                   # from now on a file of the view's own

The view is made of links. A folder that is entered is a folder of the view's own, with a link for
each thing that the real one holds, and so are all folders above it: `../data/train.csv` is found
as ever. Before something is written under a link, the link is replaced: a link to a file by a
copy of it, a link to a folder by a folder of links. So a script may overwrite its checkpoints, and
delete its logs, and the real ones stay as they are.
"""

from __future__ import annotations

import os
import shutil
from contextlib import suppress
from pathlib import Path
from typing import Final

_MOST: Final = 20_000
"""Entries of a folder that are linked; a view of more of them would take seconds to make."""
_LARGEST: Final = 256 << 20
"""Bytes of a file that is copied before it is changed."""


class FolderView:
    """A view of the disk, in a folder that exists.

    Arguments:
        root: the folder. It stands for `/`.
    """

    def __init__(self, root: Path) -> None:
        self._root = os.path.realpath(root)

    @property
    def root(self) -> str:
        """The folder that stands for `/`."""
        return self._root

    def enter(self, folder: str) -> str:
        """The folder of the view that stands for a real one; both paths are absolute."""
        if not os.listdir(self._root):
            self._fill(self._root, "/")
        inside = self._root + os.path.realpath(folder)
        self.own(inside + "/.")
        return inside

    def own(self, path: str, *, follow: bool = True, empty: bool = False) -> str:
        """Makes a path the view's own, as far as it goes through links of the view.

        Arguments:
            path: any path; relative ones start in the current folder.
            follow: whether the last part is made its own as well; not where the entry itself is
                meant, as it is by `os.remove`.
            empty: whether what a file holds is not needed.

        Returns:
            The path without links, which lies inside the view if all is well.

        Raises:
            OSError: it is too large to be copied, or cannot be read.
        """
        parts = [
            part for part in os.path.join(os.getcwd(), path).split("/") if part not in ("", ".")
        ]
        place = "/"
        for number, part in enumerate(parts):
            if part == "..":
                place = os.path.dirname(place)
                continue
            last = number == len(parts) - 1
            place = os.path.join(place, part)
            if not os.path.islink(place) or (last and not follow):
                continue
            if self.holds(os.path.dirname(place)):
                self._replace(place, empty=empty and last)
            if os.path.islink(place):  # outside the view, or to nowhere
                place = os.path.realpath(place)
        return place

    def holds(self, real: str) -> bool:
        """Whether a path without links lies inside the view."""
        return real == self._root or real.startswith(self._root + "/")

    def _replace(self, link: str, *, empty: bool) -> None:
        """A thing of the view's own in the place of a link."""
        target = os.path.realpath(link)
        if self.holds(target):
            return
        if os.path.isdir(target):
            os.remove(link)
            os.mkdir(link)
            self._fill(link, target)
        elif os.path.isfile(target):
            size = 0 if empty else os.path.getsize(target)
            if size > _LARGEST:
                raise OSError(f"{target} is too large to be copied ({size >> 20} MB)")
            os.remove(link)
            if empty:
                Path(link).touch()
            else:
                shutil.copyfile(target, link)
                with suppress(OSError):
                    shutil.copymode(target, link)

    def _fill(self, folder: str, real: str) -> None:
        """Links to all that a real folder holds."""
        names = os.listdir(real)
        if len(names) > _MOST:
            raise OSError(f"{real} has {len(names):,} entries, too many for a view of it")
        for name in names:
            os.symlink(os.path.join(real, name), os.path.join(folder, name))
