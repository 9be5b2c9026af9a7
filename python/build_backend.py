"""Builds the package with setuptools, in a copy of this folder: setuptools writes beside the sources, which may belong to another user."""

import contextlib
import os
import shutil
import tempfile
from pathlib import Path

from setuptools import build_meta
from setuptools.build_meta import build_editable, get_requires_for_build_editable, prepare_metadata_for_build_editable  # noqa: F401

HERE = Path(__file__).resolve().parent
LEFT_OUT = shutil.ignore_patterns("__pycache__", "*.egg-info", "build", "tests")


@contextlib.contextmanager
def _in_copy():
    before = os.getcwd()
    with tempfile.TemporaryDirectory(prefix="carma-build-") as scratch:
        copy = Path(scratch) / "python"
        shutil.copytree(HERE, copy, ignore=LEFT_OUT)
        # The copy has the permissions of the sources.
        for folder, _, files in os.walk(copy):
            for name in [".", *files]:
                path = Path(folder) / name
                path.chmod(path.stat().st_mode | 0o200)
        os.chdir(copy)
        try:
            yield
        finally:
            os.chdir(before)


def get_requires_for_build_wheel(config_settings=None):
    with _in_copy():
        return build_meta.get_requires_for_build_wheel(config_settings)


def prepare_metadata_for_build_wheel(metadata_directory, config_settings=None):
    metadata_directory = os.path.abspath(metadata_directory)
    with _in_copy():
        return build_meta.prepare_metadata_for_build_wheel(metadata_directory, config_settings)


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    wheel_directory = os.path.abspath(wheel_directory)
    metadata_directory = metadata_directory and os.path.abspath(metadata_directory)
    with _in_copy():
        return build_meta.build_wheel(wheel_directory, config_settings, metadata_directory)


def get_requires_for_build_sdist(config_settings=None):
    with _in_copy():
        return build_meta.get_requires_for_build_sdist(config_settings)


def build_sdist(sdist_directory, config_settings=None):
    sdist_directory = os.path.abspath(sdist_directory)
    with _in_copy():
        return build_meta.build_sdist(sdist_directory, config_settings)
