package docker

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wasmproxy/wasmproxy/runtime/cri"
	"github.com/wasmproxy/wasmproxy/runtime/observe"
)

// kills reports whether the signal ends the container without its help. Others are messages to it.
func kills(query url.Values) bool {
	switch signal := strings.TrimPrefix(strings.ToUpper(query.Get("signal")), "SIG"); signal {
	case "", "KILL", "9":
		return true
	}
	return false
}

// removes reports whether ContainerDelete removes the container, and not a link to it. Docker takes all
// other words for true.
func removes(query url.Values) bool {
	switch strings.ToLower(strings.TrimSpace(query.Get("link"))) {
	case "", "0", "no", "false", "none":
		return true
	}
	return false
}

// serveExisting serves a request about a container that exists.
func (c *call) serveExisting() {
	podID, id, k := c.identify()
	stages := stagesOf(k, c.op.sandbox, c.op.container)
	if c.unseen != nil && c.op.name == "ContainerStart" { // it may change what the container was made with
		stages = append(making(k), stages...)
	}
	if len(stages) == 0 {
		c.pass()
		return
	}
	for _, st := range stages {
		cri.SetIDs(st.request, podID, id)
		if stop, ok := st.request.(*runtimeapi.StopContainerRequest); ok {
			stop.Timeout, _ = strconv.ParseInt(c.r.URL.Query().Get("t"), 10, 64)
		}
	}
	c.hook(stages...)
}

// identify tells which container the path names, and which pod it is in. Docker is asked about one
// that the store does not know by its whole ID. notOurs is also one that there is not: the answer
// is Docker's. If Docker does not tell, the container may be a pod's: its hooks run if Docker tells
// them more, and refuse the request if a plugin must not be passed by.
func (c *call) identify() (pod, id string, k kind) {
	if of, ok := c.opts.Store.Container(c.object); ok && of.ID == c.object {
		return of.PodID, of.ID, kindOf(of.Config.GetLabels(), true) // the store has no others
	}
	if of, ok := c.opts.Store.Pod(c.object); ok && of.ID == c.object {
		return of.ID, "", ofSandbox
	}
	ctx, cancel := context.WithTimeout(c.r.Context(), readTime)
	defer cancel()
	of, k, err := c.opts.Client.inspect(ctx, c.object)
	switch {
	case status.Code(err) == codes.NotFound:
		return "", "", notOurs
	case err != nil:
		return "", c.object, ofPod
	}
	if known, ok := c.opts.Store.Container(of.ID); ok {
		return known.PodID, of.ID, k
	}
	return podID(of.ID, of.Config.Labels, k), of.ID, k
}

// A stage is one call of CRI that a request is.
type stage struct {
	request proto.Message
	changed func(to proto.Message, e *changes) // edits the body, since plugins have changed the message; nil: they cannot
	expect  func(sent proto.Message)           // called before the next stage; may be nil
	failed  func()                             // called after a later stage that failed; may be nil
	answer  func(*recorder) proto.Message      // nil: an empty one
}

// stagesOf are the calls of these methods about a container, by its kind. A standalone one is made, stops
// and goes with its pod.
func stagesOf(k kind, sandbox, container string) (all []stage) {
	if sandbox != "" && (k == ofSandbox || k == standalone) {
		all = append(all, stage{request: cri.MethodNamed(sandbox).NewRequest()})
	}
	if container != "" && (k == ofPod || k == standalone) {
		all = append(all, stage{request: cri.MethodNamed(container).NewRequest()})
	}
	return all
}

// making are the calls that make a container, without what they say of it: for a request of which
// plugins cannot be told that.
func making(k kind) []stage { return stagesOf(k, "RunPodSandbox", "CreateContainer") }

// hook takes the request through the routes of its stages, the first one outermost, and answers
// it.
func (c *call) hook(stages ...stage) {
	rec := &recorder{header: http.Header{}}
	err := c.run(c.r.Context(), rec, stages)
	switch {
	case rec.code != 0:
		for name, values := range rec.header {
			c.w.Header()[name] = values
		}
		c.w.WriteHeader(rec.code)
		_, _ = c.w.Write(rec.body.Bytes()) // the caller may be gone
	case err != nil:
		refuseError(c.w, err)
	default:
		refuse(c.w, http.StatusInternalServerError, "wasmproxy: the hooks gave neither an answer nor an error")
	}
}

// run takes the request through the first of the stages, which lets it go on to the others with a message, and so through all.
func (c *call) run(ctx context.Context, rec *recorder, stages []stage) error {
	if len(stages) == 0 {
		c.ask(c.hooked, rec, c.r.WithContext(ctx))
		switch {
		case rec.err != nil:
			return rec.err
		case rec.code >= http.StatusBadRequest:
			return &answerError{rec.code, messageOf(rec.body.Bytes())}
		}
		return nil
	}
	st := stages[0]
	method := cri.MethodOf(st.request)
	frame, err := cri.NewFrame(st.request)
	if err != nil {
		return err
	}
	next := func(ctx context.Context, sent *cri.Frame) (*cri.Frame, error) {
		to := st.request
		if sent != frame && st.changed != nil {
			to = method.NewRequest()
			if err := sent.Decode(to); err != nil {
				return nil, err
			}
			c.edit(st, to)
		}
		if st.expect != nil {
			st.expect(to)
		}
		done := false
		defer func() { // also after a panic
			if !done && st.failed != nil {
				st.failed()
			}
		}()
		if err := c.run(ctx, rec, stages[1:]); err != nil {
			return nil, err
		}
		done = true
		answer := method.NewResponse()
		if st.answer != nil {
			answer = st.answer(rec)
		}
		return cri.NewFrame(answer)
	}
	of := cri.Call{Request: frame, Unseen: c.unseen}
	intercept := c.opts.Router(method.Name)
	if intercept == nil {
		_, err = next(ctx, frame)
	} else {
		_, err = intercept(ctx, &of, next)
	}
	c.report.Plugins += of.Plugins
	c.report.Hooked, c.report.Followed = c.report.Hooked || of.Hooked, c.report.Followed || of.Followed
	return err
}

// read reads the request's body, which is restored to be sent. One that is too large for
// plugins is not read as a whole. ok is false if the request has been answered, since the body broke off.
func (c *call) read() (ok bool) {
	body, err := io.ReadAll(io.LimitReader(c.r.Body, maxBody+1))
	switch {
	case err != nil:
		refuse(c.w, http.StatusBadRequest, "wasmproxy: reading the body of the request: "+err.Error())
		return false
	case len(body) > maxBody:
		c.unseen = errors.New("its body is larger than 8 MiB")
		c.r.Body = io.NopCloser(io.MultiReader(bytes.NewReader(body), c.r.Body))
		return true
	}
	c.setBody(body)
	return true
}

// setBody has the request go on with this body.
func (c *call) setBody(body []byte) {
	c.body = body
	c.r.Body, c.r.ContentLength, c.r.TransferEncoding = io.NopCloser(bytes.NewReader(body)), int64(len(body)), nil
	if c.r.Header.Get("Content-Length") != "" {
		c.r.Header = c.r.Header.Clone()
		c.r.Header.Set("Content-Length", strconv.Itoa(len(body)))
	}
}

// edit changes the body as plugins have changed the message of a stage.
func (c *call) edit(st stage, to proto.Message) {
	e := newChanges(c.body)
	st.changed(to, e)
	if e.err != nil {
		c.opts.Observer.Observe(c.r.Context(), &observe.HooksSkipped{Method: c.op.name, Err: e.err})
		return
	}
	if len(e.left) > 0 {
		obj := observe.Object{Container: c.r.URL.Query().Get("name"), ContainerID: c.object}
		c.opts.Observer.Observe(c.r.Context(), &observe.ChangesNotSent{Method: c.op.name, Object: obj, Fields: e.left})
	}
	c.setBody(e.text())
}
