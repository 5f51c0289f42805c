# The whole service in one image: no network, no key and no second server at run time.

FROM python:3.11-slim-bookworm AS builder
# requirements-otel.txt adds what sends traces.
ARG REQUIREMENTS=requirements.txt
WORKDIR /build
COPY requirements.txt requirements-otel.txt ./
# pip stays outside of the environment, so that the image has none.
RUN python -m venv --without-pip /opt/venv \
 && python -m pip --python /opt/venv/bin/python install --quiet --no-cache-dir --no-compile \
      --only-binary :all: --require-hashes -r "$REQUIREMENTS"
RUN apt-get update -qq \
 && apt-get install -y -qq --no-install-recommends binutils >/dev/null \
 && rm -rf /var/lib/apt/lists/*
# What the libraries ship for developers: tests, type stubs, headers, build and model-conversion tools, debug symbols,
# SQLite's own command-line programs, and ONNX Runtime a second time, for callers from C. And Hugging Face's second way
# of downloading: the first, over plain HTTPS, is enough for a model. And the time zones: every time here is in UTC.
RUN cd /opt/venv/lib/python3*/site-packages \
 && find . -type d \( -name tests -o -name include \) -prune -exec rm -rf {} + \
 && find . -type f \( -name '*.pyi' -o -name '*.a' \) -delete \
 && rm -rf apsw/sqlite_extra_binaries numpy/distutils numpy/f2py \
      onnxruntime/capi/libonnxruntime.so* onnxruntime/datasets onnxruntime/quantization onnxruntime/tools \
      onnxruntime/transformers hf_xet hf_xet-*.dist-info tzdata/zoneinfo \
 && strip --strip-unneeded uvloop/*.so tokenizers/*.so
WORKDIR /app
COPY LICENSE *.py ./
COPY souvenir souvenir
COPY models models
COPY config config
# Compiled now, because nothing can be written there later; and imported, so that a missing file fails here.
RUN python -m compileall -q --invalidation-mode unchecked-hash /opt/venv/lib . \
 && DATA_DIR=/tmp/data ORT_DISABLE_TELEMETRY=1 /opt/venv/bin/python -c 'import app'

FROM python:3.11-slim-bookworm
LABEL org.opencontainers.image.title="Souvenir" \
      org.opencontainers.image.description="A memory service for agents" \
      org.opencontainers.image.licenses="Apache-2.0"
RUN groupadd --gid 10001 souvenir \
 && useradd --uid 10001 --gid souvenir --no-create-home --home-dir /data --shell /usr/sbin/nologin souvenir \
 && install -d -o souvenir -g souvenir -m 0700 /data
COPY --from=builder /opt/venv /opt/venv
COPY --from=builder /app /app
# Other embedding models, if asked for, are downloaded to the one place that can be written. ONNX Runtime's builds for
# Linux send usage data unless told not to before they load.
ENV PATH=/opt/venv/bin:$PATH \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1 \
    HOST=0.0.0.0 \
    PORT=8900 \
    DATA_DIR=/data \
    LOG_FORMAT=json \
    HF_HOME=/data/huggingface \
    HF_HUB_DISABLE_TELEMETRY=1 \
    ORT_DISABLE_TELEMETRY=1
WORKDIR /app
USER 10001:10001
VOLUME /data
EXPOSE 8900
STOPSIGNAL SIGTERM
# An opener without proxies: the address is this container's own.
HEALTHCHECK --interval=30s --timeout=5s --start-period=60s --retries=3 \
  CMD ["python", "-c", "import os, urllib.request as u; u.build_opener(u.ProxyHandler({})).open(f\"http://127.0.0.1:{os.environ['PORT']}/health\", timeout=4)"]
CMD ["python", "app.py"]
