package explain_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/wasmproxy/wasmproxy/runtime/explain"
)

var names = []explain.Name{
	{"shop", "web", ""}, {"shop", "web", "app"}, {"shop", "web", "sidecar"},
	{"shop", "db-0", ""}, {"shop", "db-0", "postgres"},
	{"test", "db-0", ""}, {"test", "db-0", "postgres"},
	{"test", "db-0", ""}, {"test", "db-0", "postgres"}, // the pod of a StatefulSet that ends, and the next one
	{"web", "app", ""}, {"web", "app", "main"},
}

func TestFind(t *testing.T) {
	for text, want := range map[string]explain.Name{
		"web":          {"shop", "web", ""},
		"shop/web":     {"shop", "web", ""},
		"web/sidecar":  {"shop", "web", "sidecar"},
		"shop/web/app": {"shop", "web", "app"},
		"test/db-0":    {"test", "db-0", ""},
		"app":          {"web", "app", ""},
		"web/app":      {"web", "app", ""}, // and not the container app of a pod web, which shop/web/app means
	} {
		if got, err := explain.Find(names, text); err != nil || got != want {
			t.Errorf("%s is %v, %v", text, got, err)
		}
	}
}

// The errors name what can be meant, or is near.
func TestFindErrors(t *testing.T) {
	for text, want := range map[string]struct {
		kind error
		text string
	}{
		"db-0":          {explain.ErrAmbiguous, `"db-0" can be any of shop/db-0, test/db-0: name one in full`},
		"db-0/postgres": {explain.ErrAmbiguous, `"db-0/postgres" can be any of shop/db-0/postgres, test/db-0/postgres: name one in full`},
		"wep":           {explain.ErrNotFound, `"wep": there is no such pod or container; names like it: shop/web, shop/web/app, shop/web/sidecar`},
		"test/db":       {explain.ErrNotFound, "; names like it: test/db-0, test/db-0/postgres"},
		"shop/web/ap":   {explain.ErrNotFound, "; names like it: shop/web, shop/web/app, shop/web/sidecar"},
		"kube-proxy":    {explain.ErrNotFound, `"kube-proxy": there is no such pod or container`},
		"":              {explain.ErrInvalid, `"" is not of the form [NAMESPACE/]POD[/CONTAINER]`},
		"shop/":         {explain.ErrInvalid, "is not of the form"},
		"a/b/c/d":       {explain.ErrInvalid, "is not of the form"},
	} {
		got, err := explain.Find(names, text)
		if !errors.Is(err, want.kind) || !strings.HasSuffix(err.Error(), want.text) && want.kind != explain.ErrInvalid || !strings.Contains(err.Error(), want.text) {
			t.Errorf("%s: %v, %v", text, got, err)
		}
	}
	if _, err := explain.Find(nil, "web"); err == nil || !strings.Contains(err.Error(), "the proxy knows of no pod") {
		t.Error(err)
	}
}

// A node's list is cut.
func TestFindListsFewNames(t *testing.T) {
	var many []explain.Name
	for _, letter := range strings.Split("abcdefghijkl", "") {
		many = append(many, explain.Name{Namespace: letter, Pod: "web"})
	}
	if _, err := explain.Find(many, "web"); err == nil || !strings.Contains(err.Error(), "h/web, 4 more: ") {
		t.Error(err)
	}
	if _, err := explain.Find(many, "weB"); err == nil || strings.Count(err.Error(), "/web") != 8 {
		t.Error(err)
	}
}
