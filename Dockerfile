# The HTTP service, run by a user without rights.  Built in one stage and run in another, so that
# neither sources nor pip's leavings are in the image.
FROM python:3.12-slim-bookworm AS build
ENV PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1
WORKDIR /src
COPY pyproject.toml README.md LICENSE ./
COPY src ./src
RUN python -m venv /opt/whereish \
 && /opt/whereish/bin/pip install '.[serve,postgres,lbs]'
# Machine code of the numerical kernels is kept in the package, where every user can read it and
# none can write: no process compiles at its first use.
RUN /opt/whereish/bin/whereish compile

FROM python:3.12-slim-bookworm
RUN useradd --system --uid 10001 --no-create-home --home-dir /nonexistent whereish \
 && install -d -o 10001 -m 0700 /var/lib/whereish
COPY --from=build /opt/whereish /opt/whereish
COPY container/service.toml /etc/whereish/service.toml
ENV PATH=/opt/whereish/bin:$PATH PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1
USER 10001
WORKDIR /etc/whereish
VOLUME /var/lib/whereish
EXPOSE 8790
HEALTHCHECK --interval=10s --timeout=5s --start-period=30s CMD ["python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8790/healthz', timeout=4)"]
ENTRYPOINT ["whereish"]
CMD ["serve", "--config", "/etc/whereish/service.toml"]
