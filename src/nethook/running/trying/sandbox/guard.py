"""An audit hook that ends the process before it changes anything outside a folder.

    guard = Guard(view, scratch, ended=report)
    guard.turn_on()                               # there is no way to turn it off

Python calls an audit hook before it opens, removes or renames a file, connects, or starts a
process. Where that would reach outside the scratch folder, `ended(reason)` is called and the
process exits at once: nothing that the script catches or registers is run. Reading is free.

What an audit hook does not see is native code that opens files by itself; `native_writers` and
`kernel_lock` are for that. It is a guard against accidents of an honest script, and no prison: code
that is written to break out of Python's own hooks can do so.
"""

from __future__ import annotations

import os
import sys
import sysconfig
import threading
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any, Final, NoReturn

from nethook.running.trying.sandbox.folder_view import FolderView

CODE: Final = 86
"""The code with which a process ends that was stopped."""

_WRITING: Final = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_DEVICES: Final = frozenset({"/dev/null", "/dev/zero", "/dev/full", "/dev/tty"})
_NO_FD: Final = -1
_ATTACH: Final = 24  # SQLite's number for ATTACH DATABASE
_INSTALLED: Final = tuple(
    {sysconfig.get_path("purelib"), sysconfig.get_path("platlib"), str(Path(__file__).parents[3])}
)
_LANGUAGE: Final = (sysconfig.get_path("stdlib"), "<frozen ")

_CONNECTIONS: Final = {
    "socket.connect": "connects to {1}",
    "socket.bind": "opens a port at {1}",
    "socket.sendto": "sends to {1}",
    "socket.sendmsg": "sends to {1}",
    "socket.getaddrinfo": "looks up the address of {0}",
    "socket.gethostbyname": "looks up the address of {0}",
    "socket.gethostbyaddr": "looks up the name of {0}",
    "urllib.Request": "requests {0}",
    "http.client.connect": "connects to {1}",
    "ftplib.connect": "connects to {1}",
    "smtplib.connect": "connects to {1}",
    "imaplib.open": "connects to {1}",
    "poplib.connect": "connects to {1}",
    "webbrowser.open": "opens {0} in a browser",
}
_PROCESSES: Final = {
    "subprocess.Popen": "starts the process {1}",
    "os.system": "runs the command {0}",
    "os.exec": "becomes the program {0}",
    "os.posix_spawn": "starts the process {0}",
    "os.spawn": "starts the process {1}",
    "os.startfile": "opens {0}",
    "os.fork": "forks",
    "os.forkpty": "forks",
    "pty.spawn": "starts the process {0}",
    "os.killpg": "sends a signal to a group of processes",
    "sqlite3.load_extension": "loads an extension into SQLite",
}
# It prints what libraries there are. `ctypes.util.find_library` asks it, which packages call when
# they are imported: those that torch is built with for CUDA among them.
_HARMLESS: Final = ("/sbin/ldconfig", "-p")
# Each follows the last link of its path, or acts on the entry itself; the positions of its paths,
# and of the folders (`dir_fd`) that they are relative to.
_THROUGH_LINKS: Final = {
    "os.chmod": ((0, 2),),
    "os.chown": ((0, 3),),
    "os.truncate": ((0, None),),
    "os.utime": ((0, 3),),
    "os.setxattr": ((0, None),),
    "os.removexattr": ((0, None),),
    "os.chflags": ((0, None),),
}
_ENTRIES: Final = {
    "os.remove": ((0, 1),),
    "os.rmdir": ((0, 1),),
    "os.mkdir": ((0, 2),),
    "os.rename": ((0, 2), (1, 3)),
    "os.symlink": ((1, 2),),
    "os.link": ((1, 3),),
}
_VERBS: Final = {
    "os.remove": "deletes",
    "os.rmdir": "deletes",
    "os.mkdir": "makes",
    "os.rename": "renames",
    "os.symlink": "makes the link",
    "os.link": "makes the link",
    "shutil.rmtree": "deletes",
}


class Guard:
    """What a process may do to the world.

    Arguments:
        view: the view of the disk that it works in.
        scratch: the folder in which it may write; the view is inside it.
        ended: told in words what the process was about to do, just before it ends.
    """

    def __init__(self, view: FolderView, scratch: str, ended: Callable[[str], None]) -> None:
        self._view = view
        self._scratch = os.path.realpath(scratch)
        self._ended = ended
        self._here = threading.local()
        self._checks: dict[str, Callable[[str, Any], None]] = {
            "open": self._open,
            "shutil.rmtree": self._rmtree,
            "os.kill": self._kill,
            "sqlite3.connect": self._sqlite,
            **dict.fromkeys(_CONNECTIONS, self._said(_CONNECTIONS)),
            **dict.fromkeys(_PROCESSES, self._process),
            **dict.fromkeys(_THROUGH_LINKS, self._through_links),
            **dict.fromkeys(_ENTRIES, self._entries),
            **dict.fromkeys(
                ("ctypes.dlopen", "ctypes.dlsym", "ctypes.dlsym/handle", "ctypes.call_function"),
                self._ctypes,
            ),
        }

    def turn_on(self) -> None:
        """From now on, for as long as the process lives."""
        import ctypes  # noqa: F401 - loading it reads symbols of Python's own

        sys.addaudithook(self._audit)

    def stop(self, what: str) -> NoReturn:
        """Ends the process; `what` it was about to do."""
        try:
            self._here.inside = True
            self._ended(what)
        finally:
            os._exit(CODE)

    def check_write(self, path: Any, *, empty: bool = False, verb: str = "writes") -> None:
        """Ends the process unless a file may be written; makes it the view's own before."""
        if isinstance(path, int):
            return  # it is open already
        before, self._here.inside = getattr(self._here, "inside", False), True
        try:
            name = os.fsdecode(path)
            inside = name in _DEVICES or self._holds(self._view.own(name, empty=empty))
        except OSError as error:
            self.stop(f"{verb} {_shown(path)} ({error})")
        if not inside:
            self.stop(f"{verb} {_shown(path)}")
        self._here.inside = before

    def check_statements(self, connection: Any) -> None:
        """Ends the process when a connection to SQLite attaches a file that may not be written."""

        def authorise(action: int, first: str | None, *_: Any) -> int:
            if action == _ATTACH and first:
                self._sqlite("", (first,))
            return 0  # SQLITE_OK

        connection.set_authorizer(authorise)

    # What Python calls

    def _audit(self, event: str, args: tuple[Any, ...]) -> None:
        check = self._checks.get(event)
        if check is None or getattr(self._here, "inside", False):
            return
        self._here.inside = True
        try:
            check(event, args)
        except Exception as error:  # an event of another form than is known: better no trial
            self.stop(f"{event} {args!r:.200} ({error})")
        finally:
            self._here.inside = False

    def _open(self, event: str, args: Any) -> None:
        path, mode, flags = args
        writing = bool(flags & _WRITING) if isinstance(flags, int) else False
        if isinstance(mode, str) and set(mode) & set("wax+"):
            writing = True
        if writing:
            self.check_write(path, empty=bool(isinstance(flags, int) and flags & os.O_TRUNC))
        elif mode is None and self._is_folder_outside(path):
            self.stop(f"opens the folder {_shown(path)}")

    def _is_folder_outside(self, path: Any) -> bool:
        # `os.open(…, dir_fd=folder)` would not say where it opens.
        if isinstance(path, int) or not os.path.isdir(path):
            return False
        return not self._holds(os.path.realpath(os.fsdecode(path)))

    def _through_links(self, event: str, args: Any) -> None:
        for place, folder in _THROUGH_LINKS[event]:
            self.check_write(self._whole(event, args, place, folder), verb="changes")

    def _entries(self, event: str, args: Any) -> None:
        for place, folder in _ENTRIES[event]:
            path = self._whole(event, args, place, folder)
            if not self._holds(self._view.own(os.fsdecode(path), follow=False)):
                self.stop(f"{_VERBS[event]} {_shown(path)}")
        if event == "os.link":  # the file would have two names, and be written by either
            source = self._whole(event, args, 0, 2)
            if not self._holds(os.path.realpath(os.fsdecode(source))):
                self.stop(f"makes a hard link to {_shown(source)}")

    def _rmtree(self, event: str, args: Any) -> None:
        # It refuses links to folders; where the script knows a folder there shall be one.
        self.check_write(self._whole(event, args, 0, 1), verb="deletes")

    def _kill(self, event: str, args: Any) -> None:
        if args[0] != os.getpid():
            self.stop(f"sends a signal to process {args[0]}")

    def _sqlite(self, event: str, args: Any) -> None:
        name = os.fsdecode(args[0])
        if name in ("", ":memory:") or name.startswith("file::memory:"):
            return
        if name.startswith("file:"):
            name, _, options = name.partition("?")
            if "mode=memory" in options or "mode=ro" in options:
                return
            from urllib.parse import unquote

            name = unquote(name.removeprefix("file://").removeprefix("file:"))
        self.check_write(name, verb="opens the database")

    def _ctypes(self, event: str, args: Any) -> None:
        # Installed packages load their own libraries in this way, torch among them.
        frame: FrameType | None = sys._getframe(2)
        while frame is not None:
            file = frame.f_code.co_filename
            if file.startswith(_INSTALLED):
                return  # first: site-packages may lie inside the standard library's folder
            if not file.startswith(_LANGUAGE):
                self.stop(f"calls native code through ctypes ({_shown(args[-1])})")
            frame = frame.f_back

    def _process(self, event: str, args: Any) -> None:
        starts = event in ("subprocess.Popen", "os.posix_spawn")
        if not (starts and is_harmless(args[0], args[1])):
            self._said(_PROCESSES)(event, args)

    def _said(self, words: dict[str, str]) -> Callable[[str, Any], None]:
        def stop(event: str, args: Any) -> None:
            given = [_shown(value) for value in args] + [""] * 2
            self.stop(words[event].format(*given).strip())

        return stop

    def _holds(self, real: str) -> bool:
        return real == self._scratch or real.startswith(self._scratch + os.sep)

    def _whole(self, event: str, args: Any, place: int, folder: int | None) -> Any:
        """A path of an event, together with the folder that it is relative to."""
        path = args[place]
        opened = args[folder] if folder is not None and folder < len(args) else _NO_FD
        if isinstance(path, int) or not isinstance(opened, int) or opened < 0:
            return path
        try:
            return os.path.join(os.readlink(f"/proc/self/fd/{opened}"), os.fsdecode(path))
        except OSError:
            self.stop(f"{_VERBS.get(event, 'changes')} {_shown(path)} in a folder that it opened")


def is_harmless(program: Any, command: Any) -> bool:
    """Whether a process only prints, and may be started."""
    if not isinstance(program, str | bytes) or not isinstance(command, list | tuple):
        return False
    words = tuple(os.fsdecode(word) for word in command)
    return os.fsdecode(program) == _HARMLESS[0] and words == _HARMLESS


def _shown(value: Any) -> str:
    """A path, an address or a command, as a person would write it."""
    if isinstance(value, list | tuple):
        return " ".join(_shown(part) for part in value)[:200]
    try:
        return os.fsdecode(value)[:200]
    except TypeError:
        return str(value)[:200]
