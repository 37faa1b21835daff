# A small image with sprat in it, built from this checkout: docker build -t sprat .
# Your own begins with `FROM sprat` and copies its code to /app.
ARG BASE=python:3.13-slim

FROM ${BASE} AS build
ARG EXTRAS=postgres,redis,server,docker,kubernetes
WORKDIR /source
COPY pyproject.toml README.md LICENSE ./
COPY src src
# A pip configuration of yours, if pip needs one here, comes as a secret and stays out of the image:
# docker build --secret id=pip,src=$HOME/.config/pip/pip.conf .
RUN --mount=type=secret,id=pip,target=/etc/pip.conf \
    python3 -m venv --without-pip /opt/sprat && \
    python3 -m pip --python /opt/sprat/bin/python install --no-cache-dir ".[${EXTRAS}]"

FROM ${BASE}
COPY --from=build /opt/sprat /opt/sprat
ENV PATH=/opt/sprat/bin:$PATH PYTHONUNBUFFERED=1
WORKDIR /app
USER 1000:1000
ENTRYPOINT ["sprat"]
CMD ["--help"]
