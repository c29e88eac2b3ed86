# The dashboard in a container, on the CPU. It was never built where it was written, for want of Docker there: what a
# test can see of it without is in tests/e2e/test_open.py.
#
#   docker build --tag datamask .
#   docker run --rm --publish 127.0.0.1:8501:8501 --volume "$PWD/shards:/data:ro" --volume datamask-runs:/runs \
#       datamask /data
#
# then http://localhost:8501. Inside the container the server listens on every address, or nobody could reach it; which
# machines can reach the container is said by --publish, whose 127.0.0.1 keeps it to this one. Under another name than
# localhost, add --env STREAMLIT_SERVER_ALLOWED_HOSTS="select.example.com 127.0.0.1", the last one for the health check.
# Paths are read below those on the command line only; DATAMASK_ROOTS names others.
FROM python:3.12-slim

ENV PYTHONUNBUFFERED=1 \
    PIP_NO_CACHE_DIR=1 \
    PIP_DISABLE_PIP_VERSION_CHECK=1

WORKDIR /source
COPY requirements.txt ./
# torch for the CPU: the one from PyPI brings gigabytes for NVIDIA GPUs
RUN pip install --index-url https://download.pytorch.org/whl/cpu "$(grep ^torch== requirements.txt)" \
    && pip install --requirement requirements.txt
COPY LICENSE README.md app.py pyproject.toml setup.py ./
COPY .streamlit/config.toml ./.streamlit/
COPY datamask ./datamask
COPY pages ./pages
COPY sample_data/demo ./sample_data/demo
COPY sample_data/demo_runs ./sample_data/demo_runs
RUN pip install . && rm -r /source/*

RUN useradd --create-home datamask && install --directory --owner datamask /runs
USER datamask
WORKDIR /home/datamask
VOLUME /runs

ENV DATAMASK_RUNS_DIR=/runs \
    STREAMLIT_SERVER_ADDRESS=0.0.0.0 \
    STREAMLIT_SERVER_PORT=8501 \
    STREAMLIT_SERVER_HEADLESS=true \
    STREAMLIT_SERVER_ALLOWED_HOSTS="localhost 127.0.0.1"
EXPOSE 8501
HEALTHCHECK --interval=30s --timeout=10s --start-period=60s CMD \
    ["python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8501/_stcore/health', timeout=5)"]
ENTRYPOINT ["datamask", "open"]
