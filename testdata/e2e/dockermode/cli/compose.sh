# What compose does: a network, a volume, services that find one another by alias, and the way down.
run docker network create --label project=compose compose-net
run docker volume create --label project=compose compose-data
run docker run -d --name compose-web --network compose-net --network-alias web --label project=compose -v compose-data:/data \
  busybox sh -c 'until [ -e /data/name ]; do sleep 0.1; done; while :; do echo "hello from $(cat /data/name)" | nc -l -p 8080; done'
run docker run --rm --network compose-net -v compose-data:/data --label project=compose busybox sh -c 'echo web >/data/name'
run docker run --rm --network compose-net --link compose-web:linked busybox sh -c '
  for host in web linked; do until answer=$(nc $host 8080 2>/dev/null) && [ "$answer" ]; do sleep 0.1; done; echo "$host: $answer"; done'
run docker ps -a --filter label=project=compose --format '{{.Names}}'
run docker network inspect -f '{{range .Containers}}{{.Name}} {{end}}' compose-net
run docker network rm compose-net
run docker volume rm compose-data
run docker network disconnect compose-net compose-web
run docker network connect --alias other compose-net compose-web
run docker inspect -f '{{range $k, $v := .NetworkSettings.Networks}}{{$k}} {{end}}' compose-web
run docker stop -t 0 compose-web
run docker rm compose-web
run docker network rm compose-net
run docker volume rm compose-data
run docker network ls --filter label=project=compose --format '{{.Name}}'
