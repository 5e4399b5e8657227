"""``LocalFS`` of 1.x: the files of this machine, or of a file system that all machines of a job share.

The calls of the original's file systems that checkpoints and scripts use. Knows no format.
"""

import os
import shutil

from fleet_mpi.errors import UsageError


class LocalFS:
    """Files and folders by path."""

    def ls_dir(self, path: str) -> tuple[list[str], list[str]]:
        """(folders, files) of a folder, by name; nothing of one that is not there."""
        if not self.is_dir(path):
            return [], []
        names = sorted(os.listdir(path))
        folders = [name for name in names if os.path.isdir(os.path.join(path, name))]
        return folders, [name for name in names if name not in folders]

    def list_dirs(self, path: str) -> list[str]:
        """The folders in a folder, by name."""
        return self.ls_dir(path)[0]

    def is_exist(self, path: str) -> bool:
        """Whether there is a file or folder."""
        return os.path.exists(path)

    stat = is_exist

    def is_dir(self, path: str) -> bool:
        """Whether it is a folder."""
        return os.path.isdir(path)

    def is_file(self, path: str) -> bool:
        """Whether it is a file."""
        return os.path.isfile(path)

    def mkdirs(self, path: str) -> None:
        """Make a folder, and those on the way; one that is there is no fault."""
        os.makedirs(path, exist_ok=True)

    mkdir = mkdirs

    def delete(self, path: str) -> None:
        """Remove a file or a folder with all that is in it; one that is not there is no fault."""
        if os.path.isdir(path) and not os.path.islink(path):
            shutil.rmtree(path)
        elif os.path.lexists(path):
            os.unlink(path)

    def rename(self, source: str, target: str) -> None:
        """Give a file or folder another name, at once; a file of that name is replaced."""
        os.rename(source, target)

    def mv(self, source: str, target: str, overwrite: bool = False) -> None:
        """Give a file or folder another name; a target that is there is refused, or removed first."""
        if overwrite:
            self.delete(target)
        elif os.path.exists(target):
            raise UsageError(f"mv: {target} is there already; give overwrite=True to replace it")
        os.rename(source, target)

    def touch(self, path: str) -> None:
        """Make an empty file, or leave the one that is there as it is."""
        with open(path, "ab"):
            pass

    def need_upload_download(self) -> bool:
        """Whether files must be copied here before they can be read: no."""
        return False
