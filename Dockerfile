# `sketchdnn serve` in a container: docker build -t sketchdnn .
# Run it as docs/tutorials/serve.md shows. It needs SKETCHDNN_TOKEN, because it listens on all addresses.
FROM python:3.12-slim AS build
COPY pyproject.toml README.md LICENSE constraints.txt /source/
COPY src /source/src
RUN python -m venv /opt/sketchdnn \
    && /opt/sketchdnn/bin/pip install --no-cache-dir -c /source/constraints.txt '/source[studio]'

FROM python:3.12-slim
COPY --from=build /opt/sketchdnn /opt/sketchdnn
# No home to write to: matplotlib and the Hub keep what they cache in /tmp.
ENV PATH=/opt/sketchdnn/bin:$PATH \
    HOME=/tmp \
    MPLCONFIGDIR=/tmp/matplotlib \
    HF_HUB_OFFLINE=1 \
    OMP_WAIT_POLICY=PASSIVE \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1
USER 65534:65534
WORKDIR /tmp
EXPOSE 8765
HEALTHCHECK --interval=30s --timeout=5s --start-period=60s \
    CMD ["python", "-c", "import os; from urllib.request import Request, urlopen; urlopen(Request('http://127.0.0.1:8765/api/v1/health', headers={'Authorization': 'Bearer ' + os.environ['SKETCHDNN_TOKEN']}), timeout=4)"]
STOPSIGNAL SIGTERM
# Clients on this machine send these names; add `--allow-host NAME` for a proxy.
CMD ["sketchdnn", "serve", "--host", "0.0.0.0", "--allow-host", "127.0.0.1", "--allow-host", "localhost", "--device", "cpu"]
