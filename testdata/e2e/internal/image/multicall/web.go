package main

import (
	"cmp"
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"strconv"
	"syscall"
)

// nginxTitle is what process 1 of an nginx container is called in its /proc/1/cmdline.
const nginxTitle = "nginx: master process nginx -g daemon off;"

// nginx starts itself again under nginx's process title and serves. The
// kernel's name of the process stays nginx, by which pidof finds it.
func nginx() error {
	if os.Args[0] != nginxTitle {
		self, err := os.Executable()
		if err != nil {
			return err
		}
		return syscall.Exec(self, []string{nginxTitle}, os.Environ())
	}
	if err := os.MkdirAll("/var/run", 0o755); err != nil {
		return err
	}
	if err := os.WriteFile("/var/run/nginx.pid", []byte(strconv.Itoa(os.Getpid())+"\n"), 0o644); err != nil {
		return err
	}
	return serve("nginx")
}

// serve answers every request with a page of welcome on $PORT, 80 unless set.
func serve(name string) error {
	port := cmp.Or(os.Getenv("PORT"), "80")
	fmt.Println(name, "-D FOREGROUND listening on", port)
	end := make(chan os.Signal, 1)
	signal.Notify(end, syscall.SIGINT, syscall.SIGTERM, syscall.SIGQUIT)
	go func() {
		<-end
		os.Exit(0)
	}()
	return http.ListenAndServe(":"+port, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w, "<html><body><h1>Welcome to %s!</h1></body></html>\n", name)
	}))
}
