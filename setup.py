"""Build the package from settings.ini, the one place where names, versions and requirements are kept."""

import shlex
from configparser import ConfigParser
from pathlib import Path

from setuptools import find_packages, setup

config = ConfigParser(delimiters=["="])
config.read("settings.ini", encoding="utf-8")
cfg = config["DEFAULT"]


def requirements(key: str) -> list[str]:
    """The requirements that settings.ini lists under `key`."""
    return shlex.split(cfg.get(key, ""))


SUFFIX = "_requirements"
extras = {key.removesuffix(SUFFIX): requirements(key) for key in cfg if key.endswith(SUFFIX)}

setup(
    name=cfg["lib_name"],
    version=cfg["version"],
    description=cfg["description"],
    long_description=Path("README.md").read_text(encoding="utf-8"),
    long_description_content_type="text/markdown",
    author=cfg["author"],
    author_email=cfg["author_email"],
    url=cfg["git_url"],
    license="Apache-2.0",
    license_files=["LICENSE"],
    keywords=cfg["keywords"],
    packages=find_packages(include=["mtbo_nb", "mtbo_nb.*"]),
    package_data={"mtbo_nb": ["py.typed", "data/*"]},
    python_requires=f">={cfg['min_python']}",
    install_requires=requirements("requirements"),
    extras_require=extras,
    entry_points={
        "console_scripts": requirements("console_scripts"),
        "nbdev": [f"{cfg['lib_name']}={cfg['lib_name']}._modidx:d"],
    },
    classifiers=[
        "Development Status :: 3 - Alpha",
        "Intended Audience :: Science/Research",
        "Programming Language :: Python :: 3",
        "Programming Language :: Python :: 3.11",
        "Programming Language :: Python :: 3.12",
        "Programming Language :: Python :: 3.13",
        "Framework :: Jupyter",
        "Topic :: Scientific/Engineering",
    ],
    zip_safe=False,
)
