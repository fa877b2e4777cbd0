package main

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// runbooks is where the sections about alerts are, for people who get one.
const runbooks = "https://github.com/wasmproxy/wasmproxy/blob/main/docs/"

// TestAlertsDocumented wants a section of a document for each alert, to which its runbook_url leads, and a
// case in the tests of its file in which it fires; and no section of an alert that does not exist.
func TestAlertsDocumented(t *testing.T) {
	for name, document := range map[string]string{"alerts": "alerts.md", "fleet-alerts": "fleet.md"} {
		t.Run(name, func(t *testing.T) { alertsDocumented(t, name, document) })
	}
}

func alertsDocumented(t *testing.T, name, document string) {
	type alert struct {
		Name        string `json:"alert"`
		Labels      struct{ Severity string }
		Annotations map[string]string
	}
	var rules struct{ Groups []struct{ Rules []alert } }
	var cases struct {
		Tests []struct {
			Alerts []struct {
				Name  string `json:"alertname"`
				Fires []any  `json:"exp_alerts"`
			} `json:"alert_rule_test"`
		}
	}
	for file, into := range map[string]any{name + ".yaml": &rules, name + "_test.yaml": &cases} {
		text, err := os.ReadFile("../../deploy/prometheus/" + file)
		if err != nil {
			t.Fatal(err)
		}
		if err := yaml.Unmarshal(text, into); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
	}
	tried := map[string]bool{}
	for _, c := range cases.Tests {
		for _, a := range c.Alerts {
			tried[a.Name] = tried[a.Name] || len(a.Fires) > 0
		}
	}
	page, err := os.ReadFile("../../docs/" + document)
	if err != nil {
		t.Fatal(err)
	}
	var sections []string
	for _, heading := range regexp.MustCompile(`(?m)^##+ (Wasmproxy\w+)$`).FindAllSubmatch(page, -1) {
		sections = append(sections, string(heading[1]))
	}
	var names []string
	for _, g := range rules.Groups {
		for _, a := range g.Rules {
			names = append(names, a.Name)
			if want := runbooks + document + "#" + strings.ToLower(a.Name); a.Annotations["runbook_url"] != want {
				t.Errorf("%s: runbook_url is %q, want %q", a.Name, a.Annotations["runbook_url"], want)
			}
			if !slices.Contains([]string{"critical", "warning"}, a.Labels.Severity) || a.Annotations["summary"] == "" {
				t.Errorf("%s: the severity is %q, the summary %q", a.Name, a.Labels.Severity, a.Annotations["summary"])
			}
			if !tried[a.Name] {
				t.Errorf("%s fires in no case of %s_test.yaml", a.Name, name)
			}
		}
	}
	if !slices.Equal(names, sections) {
		t.Errorf("the alerts are\n%q\nbut docs/%s has the sections\n%q", names, document, sections)
	}
}
