# syntax=docker/dockerfile:1
# Builds trialrun and puts it into a small image, with git and without root.
#   docker build --tag trialrun .
#   docker run --rm --volume "$PWD:/work" --user "$(id -u):$(id -g)" trialrun run

FROM rust:1.95-slim-bookworm AS build
WORKDIR /source
COPY . .
RUN --mount=type=cache,target=/usr/local/cargo/registry \
    --mount=type=cache,target=/source/target \
    cargo build --locked --profile dist --package trialrun \
    && install -m 755 target/dist/trialrun /trialrun

FROM debian:bookworm-slim
# Agents that are programs, such as Claude Code, are installed in an image that starts from this one.
# The mounted project belongs to another user, which git refuses without `safe.directory`.
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install --yes --no-install-recommends ca-certificates git \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --create-home --uid 1000 trialrun \
    && git config --system --add safe.directory '*'
COPY --from=build /trialrun /usr/local/bin/trialrun
COPY LICENSE-MIT LICENSE-APACHE /usr/share/doc/trialrun/
USER 1000
WORKDIR /work
ENTRYPOINT ["trialrun"]
CMD ["--help"]
