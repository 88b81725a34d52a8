# Two images: `shipper`, what stands beside or around a job, and `server`, the workers and the executor.
#   docker build --target shipper -t midwatch-shipper .
#   docker build --target server -t midwatch .
FROM python:3.13.9-slim-bookworm AS python
ENV PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1 PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1

FROM python AS wheel
WORKDIR /source
COPY requirements/build.lock requirements/
RUN pip install --require-hashes -r requirements/build.lock
COPY . .
RUN python -m hatchling build -t wheel -d /wheels

FROM python AS shipper
COPY requirements/base.lock /tmp/
RUN pip install --require-hashes -r /tmp/base.lock && rm /tmp/base.lock
COPY --from=wheel /wheels /tmp/wheels
RUN pip install --no-deps /tmp/wheels/*.whl && rm -r /tmp/wheels
# The directories exist before volumes are mounted there, so that the volumes belong to `watch` too.
RUN useradd --uid 10001 --create-home watch && install -d -o watch -m 0700 /var/lib/midwatch /job
USER watch
ENV MIDWATCH_STATE_DIRECTORY=/var/lib/midwatch
ENTRYPOINT ["midwatch"]
CMD ["ship", "--help"]

FROM python AS server
COPY requirements/server.lock /tmp/
RUN pip install --require-hashes -r /tmp/server.lock && rm /tmp/server.lock
COPY --from=wheel /wheels /tmp/wheels
RUN pip install --no-deps /tmp/wheels/*.whl && rm -r /tmp/wheels
# The state directory exists before a volume is mounted there, so that the volume belongs to `watch` too.
RUN useradd --uid 10001 --create-home watch && install -d -o watch -m 0700 /var/lib/midwatch
USER watch
ENV MIDWATCH_STATE_DIRECTORY=/var/lib/midwatch
ENTRYPOINT ["midwatch"]
CMD ["--help"]
