package koord_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// engine is a Docker Engine that keeps containers and runs none. It remembers the bodies that it was
// sent and fails as it is told. make e2e-dockerd has a real one.
type engine struct {
	socket string
	server *http.Server
	closed chan struct{}

	mu         sync.Mutex
	last       int
	containers map[string]*engineContainer
	asked      []engineRequest
	failing    string // operation that fails
}

type engineContainer struct {
	id, name, state string
	config          map[string]any // the body that made it
}

// engineRequest is a request as it arrived.
type engineRequest struct{ operation, body string }

func newEngine(socket string) *engine {
	return &engine{socket: socket, containers: map[string]*engineContainer{}}
}

func (e *engine) start() error {
	l, err := net.Listen("unix", e.socket)
	if err != nil {
		return err
	}
	e.closed = make(chan struct{})
	e.server = &http.Server{Handler: e}
	go e.server.Serve(l)
	return nil
}

func (e *engine) stop() {
	if e.server != nil {
		close(e.closed)
		e.server.Close()
		e.server = nil
	}
}

func (e *engine) fail(operation string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.failing = operation
}

// bodies returns the bodies of the requests of an operation, the oldest first.
func (e *engine) bodies(operation string) (bodies []string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, r := range e.asked {
		if r.operation == operation {
			bodies = append(bodies, r.body)
		}
	}
	return bodies
}

// body returns the newest of them, "" if there is none.
func (e *engine) body(operation string) string {
	bodies := e.bodies(operation)
	return append([]string{""}, bodies...)[len(bodies)]
}

var (
	engineVersion = regexp.MustCompile(`^/v[\d.]+/`)
	ofContainer   = regexp.MustCompile(`^/containers/([^/]+)(?:/([a-z]+))?$`)
)

func (e *engine) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	path, id := engineVersion.ReplaceAllString(r.URL.Path, "/"), ""
	operation := path
	if m := ofContainer.FindStringSubmatch(path); m != nil && path != "/containers/json" && path != "/containers/create" {
		id, operation = m[1], cmp.Or(m[2], strings.ToLower(r.Method))
	}
	if operation == "/events" {
		e.hang(w, r)
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.asked = append(e.asked, engineRequest{operation, string(body)})
	if operation == e.failing {
		reply(w, http.StatusInternalServerError, map[string]any{"message": operation + " fails, as it was told"})
		return
	}
	if id == "" {
		e.serveEngine(w, r, operation, body)
		return
	}
	e.serveContainer(w, id, operation)
}

// hang is a stream of events on which nothing happens.
func (e *engine) hang(w http.ResponseWriter, r *http.Request) {
	w.WriteHeader(http.StatusOK)
	http.NewResponseController(w).Flush()
	select {
	case <-r.Context().Done():
	case <-e.closed:
	}
}

func (e *engine) serveEngine(w http.ResponseWriter, r *http.Request, operation string, body []byte) {
	switch operation {
	case "/_ping":
		w.Write([]byte("OK"))
	case "/version":
		reply(w, http.StatusOK, map[string]any{"Version": "20.10.24", "ApiVersion": "1.41", "MinAPIVersion": "1.12"})
	case "/info":
		reply(w, http.StatusOK, map[string]any{"ServerVersion": "20.10.24", "CgroupDriver": "cgroupfs", "CgroupVersion": "2", "DefaultRuntime": "runc"})
	case "/containers/json":
		all := []any{}
		for _, id := range slices.Sorted(maps.Keys(e.containers)) {
			c := e.containers[id]
			all = append(all, map[string]any{"Id": id, "Names": []string{"/" + c.name}, "Labels": c.config["Labels"], "State": c.state})
		}
		reply(w, http.StatusOK, all)
	case "/containers/create":
		c := &engineContainer{name: r.URL.Query().Get("name"), state: "created"}
		if err := json.Unmarshal(body, &c.config); err != nil {
			reply(w, http.StatusBadRequest, map[string]any{"message": err.Error()})
			return
		}
		e.last++
		c.id = fmt.Sprintf("%064x", e.last)
		e.containers[c.id] = c
		reply(w, http.StatusCreated, map[string]any{"Id": c.id, "Warnings": []string{}})
	default:
		reply(w, http.StatusNotFound, map[string]any{"message": "page not found"})
	}
}

func (e *engine) serveContainer(w http.ResponseWriter, id, operation string) {
	c, ok := e.containers[id]
	if !ok {
		reply(w, http.StatusNotFound, map[string]any{"message": "No such container: " + id})
		return
	}
	switch operation {
	case "json":
		reply(w, http.StatusOK, map[string]any{
			"Id": id, "Name": "/" + c.name, "Created": "2026-01-01T00:00:00Z", "State": map[string]any{"Status": c.state, "Running": c.state == "running"},
			"Config": c.config, "HostConfig": c.config["HostConfig"],
		})
	case "update":
		reply(w, http.StatusOK, map[string]any{"Warnings": nil})
	case "start", "stop", "kill", "delete":
		c.state = map[string]string{"start": "running"}[operation]
		if operation == "delete" {
			delete(e.containers, id)
		}
		w.WriteHeader(http.StatusNoContent)
	default:
		reply(w, http.StatusNotFound, map[string]any{"message": "page not found"})
	}
}

func reply(w http.ResponseWriter, code int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	json.NewEncoder(w).Encode(body)
}
