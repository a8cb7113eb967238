package config_test

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"

	"tutti/internal/config"
)

// urlKeys has what each key with a URL needs beside it.
const urlKeys = `
repositories: [{code: a, type: lyric, url: "http://a", indexName: a, lyric: {categoryId: 1},
  notifications: {kafka: {brokers: ["k:1"], topic: t, sasl: {mechanism: OAUTHBEARER, oauth: {tokenUrl: "http://127.0.0.1", clientId: c, clientSecret: c}}}}}]
ingest: {kafka: {brokers: ["k:1"], sasl: {mechanism: OAUTHBEARER, oauth: {tokenUrl: "http://127.0.0.1", clientId: c, clientSecret: c}}}}
schemas: {defaultOptions: {externalValidations: [{url: "http://a", jsonPath: $.a}]}}
queue: {url: "nats://127.0.0.1"}
auth: {mode: token, allowHttp: true, jwt: {jwksUrl: "http://a", issuer: i, audience: a}, introspection: {url: "http://a", clientId: c, clientSecret: c},
  uma: {tokenUrl: "http://a", clientId: c}}
alerts: [{url: "http://a"}]
`

// TestURLsShowNoSecrets: a user, a password and a secret parameter in a URL are refused by a message without them, or are in nothing that prints
// the configuration or a part of it.
func TestURLsShowNoSecrets(t *testing.T) {
	accepted := map[string][]string{}
	for _, e := range config.Entries() {
		if !regexp.MustCompile(`(?i)(url|endpoint)$`).MatchString(e.Path) {
			continue
		}
		scheme := "http"
		switch e.Path {
		case "queue.url":
			scheme = "nats"
		case "store.url":
			scheme = "postgres"
		}
		for form, value := range map[string]string{
			"user":      scheme + "://s3cretuser:s3cretpassword@127.0.0.1:1",
			"parameter": scheme + "://127.0.0.1:1/a?password=s3cretparameter",
		} {
			c, err := config.Parse([]byte(urlKeys), []string{e.Variable + "=" + value})
			if err != nil {
				if text := fmt.Sprintf("%v %+v", err, err); strings.Contains(text, "s3cret") || !strings.Contains(text, e.Variable) && !strings.Contains(text, strings.ReplaceAll(e.Path, "[]", "[0]")) {
					t.Errorf("%s with a %s: the error is %s", e.Path, form, text)
				}
				continue
			}
			accepted[form] = append(accepted[form], e.Path)
			shown := fmt.Sprint(c)
			if e.Path != "schemas.defaultOptions.externalValidations[].url" { // every reader of the analysis types sees it
				shown += shownBy(t, c)
			}
			if strings.Contains(shown, "s3cret") {
				at := strings.Index(shown, "s3cret")
				t.Errorf("%s with a %s: …%s…", e.Path, form, shown[max(0, at-60):min(len(shown), at+40)])
			}
		}
	}
	for form, want := range map[string][]string{
		"user": {"queue.url", "queue.monitoringUrl", "store.url", "service.contactUrl", "service.organization.url", "alerts[].url"},
		"parameter": {
			"queue.url", "queue.monitoringUrl", "index.url", "store.url",
			"repositories[].notifications.kafka.sasl.oauth.tokenUrl", "schemas.defaultOptions.externalValidations[].url", "ingest.kafka.sasl.oauth.tokenUrl",
			"auth.jwt.jwksUrl", "auth.introspection.url", "auth.uma.tokenUrl", "service.contactUrl", "service.organization.url", "tracing.endpoint", "alerts[].url",
		},
	} {
		if diff := cmp.Diff(want, accepted[form]); diff != "" {
			t.Errorf("the keys that accept a %s: %s", form, diff)
		}
	}
}

// shownBy returns c and each of its sections, lists and values by itself, in all ways in which a value is printed.
func shownBy(t *testing.T, c config.Config) string {
	t.Helper()
	var shown strings.Builder
	text := slog.New(slog.NewTextHandler(&shown, nil))
	lines := slog.New(slog.NewJSONHandler(&shown, nil))
	show := func(value any) {
		fmt.Fprintf(&shown, "%v\n%+v\n%#v\n", value, value, value)
		b, err := json.Marshal(value)
		if err != nil {
			t.Fatal(err)
		}
		shown.Write(b)
		if b, err = yaml.Marshal(value); err != nil {
			t.Fatal(err)
		}
		shown.Write(b)
		text.Info("text", "value", value)
		lines.Info("json", "value", value)
	}
	parts := 0
	var walk func(v reflect.Value)
	walk = func(v reflect.Value) {
		switch v.Kind() {
		case reflect.Pointer, reflect.Interface:
			if !v.IsNil() {
				walk(v.Elem())
			}
			return
		case reflect.Slice, reflect.Array:
			for i := range v.Len() {
				walk(v.Index(i))
			}
		case reflect.Struct:
			for i := range v.NumField() {
				if v.Type().Field(i).IsExported() {
					walk(v.Field(i))
				}
			}
		case reflect.String:
		default:
			return
		}
		parts++
		show(v.Interface())
		if v.CanAddr() && v.Kind() == reflect.Struct {
			show(v.Addr().Interface())
		}
	}
	walk(reflect.ValueOf(&c))
	if parts < 100 {
		t.Fatalf("%d parts of the configuration", parts)
	}
	return shown.String()
}
