# The whole service in one image: no network, no key and no second server at run time.

FROM python:3.11-slim-bookworm AS builder
# requirements-otel.txt adds the trace exporter, requirements-sync.txt cloud sync (29 MB); several are separated by spaces.
ARG REQUIREMENTS=requirements.txt
WORKDIR /build
COPY requirements.txt requirements-otel.txt requirements-sync.txt ./
# pip stays outside of the environment; the last stage removes it from the base.
RUN python -m venv --without-pip /opt/venv \
 && python -m pip --python /opt/venv/bin/python install --quiet --no-cache-dir --no-compile \
      --only-binary :all: --require-hashes $(printf -- '-r %s ' $REQUIREMENTS)
RUN apt-get update -qq \
 && apt-get install -y -qq --no-install-recommends binutils >/dev/null \
 && rm -rf /var/lib/apt/lists/*
# Remove the parts of libraries that the service does not use: tests, type stubs, headers, build and model-conversion tools,
# debug symbols, SQLite's command-line programs, ONNX Runtime's C library, Hugging Face's second download protocol (plain
# HTTPS is enough), time zones (every time is in UTC), and the places and carriers of telephone numbers (44 MB), of which
# only the numbering plans are used.
RUN cd /opt/venv/lib/python3*/site-packages \
 && find . -type d \( -name tests -o -name include \) -prune -exec rm -rf {} + \
 && find . -type f \( -name '*.pyi' -o -name '*.a' \) -delete \
 && rm -rf apsw/sqlite_extra_binaries numpy/distutils numpy/f2py \
      onnxruntime/capi/libonnxruntime.so* onnxruntime/datasets onnxruntime/quantization onnxruntime/tools \
      onnxruntime/transformers hf_xet hf_xet-*.dist-info dateutil/zoneinfo/*.tar.gz \
      phonenumbers/geodata phonenumbers/carrierdata phonenumbers/tzdata \
      phonenumbers/geocoder.py phonenumbers/carrier.py phonenumbers/timezone.py phonenumbers/prefix.py \
 && strip --strip-unneeded uvloop/*.so tokenizers/*.so
WORKDIR /app
COPY LICENSE *.py ./
COPY souvenir souvenir
COPY models models
COPY config config
# Compile now, because the root is read-only later; and import the application, so that a missing file fails here.
RUN python -m compileall -q --invalidation-mode unchecked-hash /opt/venv/lib . \
 && DATA_DIR=/tmp/data ORT_DISABLE_TELEMETRY=1 /opt/venv/bin/python -c 'import app'

FROM python:3.11-slim-bookworm
LABEL org.opencontainers.image.title="Souvenir" \
      org.opencontainers.image.description="A memory service for agents" \
      org.opencontainers.image.licenses="Apache-2.0"
# Remove the package installers of the base image, which nothing uses at run time.
RUN rm -rf /usr/local/lib/python3*/site-packages/* /usr/local/lib/python3*/ensurepip /usr/local/bin/pip* /usr/local/bin/wheel
RUN groupadd --gid 10001 souvenir \
 && useradd --uid 10001 --gid souvenir --no-create-home --home-dir /data --shell /usr/sbin/nologin souvenir \
 && install -d -o souvenir -g souvenir -m 0700 /data
COPY --from=builder /opt/venv /opt/venv
COPY --from=builder /app /app
# Other embedding models are downloaded to the one writable folder. ONNX Runtime's builds for Linux send usage data unless
# this is set before they are imported.
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
# An opener without proxies, since the address is this container's own.
HEALTHCHECK --interval=30s --timeout=5s --start-period=60s --retries=3 \
  CMD ["python", "-c", "import os, urllib.request as u; u.build_opener(u.ProxyHandler({})).open(f\"http://127.0.0.1:{os.environ['PORT']}/health\", timeout=4)"]
CMD ["python", "app.py"]
