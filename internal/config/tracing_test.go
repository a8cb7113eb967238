package config_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tutti/internal/config"
)

func TestTracing(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		file    string
		environ []string
		url     string // "" if tracing is off
		headers map[string]string
		service string
		warning string
	}{
		"off":         {service: "tutti"},
		"an endpoint": {file: "endpoint: 'http://a:4318', headers: ' x = a%20b,y=%zz,'", url: "http://a:4318/v1/traces", headers: map[string]string{"x": "a b", "y": "%zz"}, service: "tutti"},
		"a slash":     {file: "endpoint: 'http://a:4318/'", url: "http://a:4318/v1/traces", service: "tutti"},
		"a path":      {file: "endpoint: 'https://a/otlp?x=y'", url: "https://a/otlp?x=y", service: "tutti"},
		"OpenTelemetry's": {
			environ: []string{"OTEL_EXPORTER_OTLP_ENDPOINT=http://a:4318/base/", "OTEL_EXPORTER_OTLP_HEADERS=x=y", "OTEL_SERVICE_NAME=s"},
			url:     "http://a:4318/base/v1/traces", headers: map[string]string{"x": "y"}, service: "s",
		},
		"those of traces": {
			environ: []string{
				"OTEL_EXPORTER_OTLP_ENDPOINT=http://a", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=http://b/t", "OTEL_EXPORTER_OTLP_HEADERS=x=y",
				"OTEL_EXPORTER_OTLP_TRACES_HEADERS=x=z", "OTEL_EXPORTER_OTLP_PROTOCOL=grpc", "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL=http/protobuf",
			},
			url: "http://b/t", headers: map[string]string{"x": "z"}, service: "tutti",
		},
		"tutti's take precedence": {
			file:    "endpoint: 'http://a', serviceName: s",
			environ: []string{"OTEL_EXPORTER_OTLP_ENDPOINT=b:4317", "OTEL_EXPORTER_OTLP_HEADERS=x=y", "TUTTI_TRACING_HEADERS=z=1", "OTEL_SERVICE_NAME=other"},
			url:     "http://a/v1/traces", headers: map[string]string{"z": "1"}, service: "s",
		},
		"empty ones":    {environ: []string{"OTEL_EXPORTER_OTLP_ENDPOINT=", "OTEL_EXPORTER_OTLP_HEADERS=", "OTEL_SERVICE_NAME="}, service: "tutti"},
		"turned off":    {environ: []string{"OTEL_EXPORTER_OTLP_ENDPOINT=http://a", "OTEL_SDK_DISABLED=true"}, service: "tutti"},
		"no traces":     {environ: []string{"OTEL_EXPORTER_OTLP_ENDPOINT=http://a", "OTEL_TRACES_EXPORTER=none"}, service: "tutti"},
		"gRPC":          {environ: []string{"OTEL_EXPORTER_OTLP_ENDPOINT=http://a:4317", "OTEL_EXPORTER_OTLP_PROTOCOL=grpc"}, service: "tutti", warning: "OTEL_EXPORTER_OTLP_ENDPOINT does not name"},
		"no URL":        {environ: []string{"OTEL_EXPORTER_OTLP_ENDPOINT=a:4317"}, service: "tutti", warning: "OTEL_EXPORTER_OTLP_ENDPOINT does not name"},
		"wrong headers": {environ: []string{"OTEL_EXPORTER_OTLP_HEADERS=s3cret"}, service: "tutti", warning: "OTEL_EXPORTER_OTLP_HEADERS is ignored"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := parse(t, "tracing: {"+tt.file+"}", tt.environ...)
			url := ""
			if c.Tracing.Enabled() {
				url = c.Tracing.URL()
			}
			if tt.headers == nil {
				tt.headers = map[string]string{}
			}
			if diff := cmp.Diff(tt.headers, c.Tracing.HeaderValues()); diff != "" || url != tt.url || c.Tracing.ServiceName != tt.service {
				t.Errorf("%q, service %s, headers %s", url, c.Tracing.ServiceName, diff)
			}
			warnings := strings.Join(c.Warnings, "\n")
			if (warnings != "") != (tt.warning != "") || !strings.Contains(warnings, tt.warning) || strings.Contains(warnings, "s3cret") {
				t.Errorf("warnings: %s", warnings)
			}
		})
	}
	for file, want := range map[string]string{
		"endpoint: 'http://u:s3cret@a'": `tracing.endpoint: "http://********@a" is not an http or https URL without credentials (line 1)`,
		"headers: 's3cret'":             "tracing.headers: ******** is not a list of name=value, separated by commas (line 1)",
		"headers: 'x=a%0As3cret'":       "tracing.headers: the value of x contains a control character (line 1)",
		"sampleRatio: -0.1":             `tracing.sampleRatio: must be a number from 0 to 1, not "-0.1" (line 1)`,
		"sampleRatio: NaN":              `tracing.sampleRatio: must be a number from 0 to 1, not "NaN" (line 1)`,
	} {
		if _, err := config.Parse([]byte("tracing: {"+file+"}"), nil); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v", file, err)
		}
	}
}
