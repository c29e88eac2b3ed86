#!/usr/bin/env bash
# An image answers on its port and selects rows of the demo: smoke-test.sh IMAGE
set -euo pipefail
image=$1
container=$(docker run --detach --rm --publish 127.0.0.1:8501:8501 "$image")
trap 'docker stop "$container" >/dev/null' EXIT
for _ in $(seq 60); do
  if curl --fail --silent http://127.0.0.1:8501/_stcore/health >/dev/null; then
    break
  fi
  sleep 2
done
curl --fail --silent --show-error http://127.0.0.1:8501/ >/dev/null
docker exec "$container" sh -c '
  demo=$(python -c "from datamask.dashboard.data import demo; print(demo.CORPUS)")
  datamask select "$demo" --output /tmp/kept.parquet --json | tail -n 1' | grep --quiet '"selected": 1796'
echo "$image serves and selects"
