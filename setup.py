"""What pyproject.toml cannot say: where the scripts of the web server go in an installed package.

`streamlit run app.py` wants app.py on top of the repository and its pages in the folder beside it. A package must not
put either on top of somebody's site-packages, so they become the folder ``datamask/served`` of the wheel, as they are;
`datamask.dashboard.server.scripts` finds them in both places.
"""

from setuptools import find_packages, setup

SERVED = {
    "datamask.served": ".",
    "datamask.served.pages": "pages",
    "datamask.served.sample_data.demo": "sample_data/demo",
    "datamask.served.sample_data.demo_runs": "sample_data/demo_runs",
}
"""Folder of the wheel, named as a package -> folder of the repository."""

setup(
    packages=[*find_packages(include=["datamask*"]), *SERVED],
    package_dir=SERVED,
    py_modules=[],
    package_data={
        "datamask.dashboard.runs": ["*.svg"],
        "datamask.dashboard.shell": ["browser/*.js", "browser/*.css"],
        "datamask.served": [".streamlit/config.toml"],
        "datamask.served.sample_data.demo": ["*"],
        "datamask.served.sample_data.demo_runs": ["*/*", "*/*/*"],
    },
    # by its name setuptools knows this file among the modules of the first folder, and leaves it out
    script_name="setup.py",
)
