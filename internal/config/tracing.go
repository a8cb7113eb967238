package config

import (
	"fmt"
	"net/url"
	"regexp"
	"strings"
	"unicode"

	"tutti/internal/base/setting"
)

// headersPattern matches name=value pairs as OTEL_EXPORTER_OTLP_HEADERS has them (OpenTelemetry, Protocol Exporter).
const headersPattern = `^\s*[A-Za-z0-9!#$%&'*+.^_|~-]+\s*=[^,]*(,\s*[A-Za-z0-9!#$%&'*+.^_|~-]+\s*=[^,]*)*,?\s*$`

// tracesPath is the path of a receiver (OTLP, "OTLP/HTTP Request").
const tracesPath = "/v1/traces"

// Tracing configures OpenTelemetry traces.
type Tracing struct {
	// Endpoint is the URL of a receiver of OTLP over HTTP; empty for no traces.
	Endpoint setting.URL
	// Headers are name=value pairs, separated by commas, for each request to Endpoint; values may be percent-encoded.
	Headers setting.Secret
	// SampleRatio is the part of the traces that begin in tutti that is recorded.
	SampleRatio float64
	ServiceName string
	TLS         ClientTLS
}

func (t *Tracing) key() setting.Key {
	return setting.Object("tracing", "Traces for OpenTelemetry.", append([]setting.Key{
		setting.Address("endpoint", &t.Endpoint, "URL of a receiver of OTLP over HTTP, such as http://127.0.0.1:4318; without a path it is /v1/traces. Empty for no traces.").
			Matching(urlPattern, "an absolute http or https URL"),
		setting.SecretText("headers", &t.Headers, "Headers for the receiver, name=value, comma-separated; values may be percent-encoded.").
			Matching(headersPattern, "a list of name=value, separated by commas"),
		setting.Ratio("sampleRatio", &t.SampleRatio, 1, "Part of the traces that is recorded, from 0 to 1; requests with the header traceparent are recorded as it says."),
		setting.Text("serviceName", &t.ServiceName, "tutti", "Name of the service in traces.").Require(),
	}, t.TLS.keys()...)...)
}

// Enabled reports whether traces are recorded.
func (t Tracing) Enabled() bool { return t.Endpoint != "" }

// URL returns the URL that receives traces.
func (t Tracing) URL() string {
	u, err := url.Parse(t.Endpoint.Reveal())
	if err != nil {
		return t.Endpoint.Reveal()
	}
	if u.Path == "" || u.Path == "/" {
		u.Path = tracesPath
	}
	return u.String()
}

// HeaderValues returns the values of Headers by their names.
func (t Tracing) HeaderValues() map[string]string {
	values := map[string]string{}
	for _, pair := range setting.SplitList(t.Headers.Reveal()) {
		name, value, _ := strings.Cut(pair, "=")
		value = strings.TrimSpace(value)
		if decoded, err := url.PathUnescape(value); err == nil {
			value = decoded
		}
		values[strings.TrimSpace(name)] = value
	}
	return values
}

func (t Tracing) validate(given *setting.Node, f *setting.ErrorList) {
	if t.Endpoint != "" && (!absoluteHTTP(t.Endpoint.Reveal()) || hasUser(t.Endpoint.Reveal())) {
		f.Add("tracing.endpoint", sourceOf(given, "endpoint"), "such as http://127.0.0.1:4318; set credentials in tracing.headers",
			"%q is not an http or https URL without credentials", setting.MaskUser(t.Endpoint.Reveal()))
	}
	t.TLS.validateFor("tracing", "endpoint", t.Endpoint.Reveal(), f)
	for name, value := range t.HeaderValues() {
		if strings.ContainsFunc(value, unicode.IsControl) {
			f.Add("tracing.headers", sourceOf(given, "headers"), "", "the value of %s contains a control character", name)
		}
	}
}

// overlayOTel copies OpenTelemetry's variables into keys that root does not set (doc.go), and returns warnings about those that are not used.
func overlayOTel(root *setting.Node, environ []string) (warnings []string) {
	variables := map[string]setting.EnvVariable{}
	for _, entry := range environ {
		name, value, _ := strings.Cut(entry, "=")
		if strings.HasPrefix(name, "OTEL_") && value != "" {
			variables[name] = setting.EnvVariable{Name: name, Value: value}
		}
	}
	first := func(names ...string) setting.EnvVariable {
		for _, name := range names {
			if v, set := variables[name]; set {
				return v
			}
		}
		return setting.EnvVariable{}
	}
	off := strings.EqualFold(variables["OTEL_SDK_DISABLED"].Value, "true") || variables["OTEL_TRACES_EXPORTER"].Value == "none"
	endpoint := first("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
	protocol := first("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL")
	switch address := endpoint.Value; {
	case address == "" || off || root.Member("tracing").Member("endpoint") != nil:
	case protocol.Value == "grpc" || !absoluteHTTP(address) || hasUser(address):
		warnings = append(warnings, fmt.Sprintf("no traces are sent: %s does not name a receiver of OTLP over HTTP; set tracing.endpoint", endpoint.Name))
	default:
		if endpoint.Name == "OTEL_EXPORTER_OTLP_ENDPOINT" {
			address = strings.TrimRight(address, "/") + tracesPath
		}
		root.Fill(endpoint, address, "tracing", "endpoint")
	}
	headers := first("OTEL_EXPORTER_OTLP_TRACES_HEADERS", "OTEL_EXPORTER_OTLP_HEADERS")
	switch {
	case headers.Value == "" || root.Member("tracing").Member("headersFile") != nil:
	case !regexp.MustCompile(headersPattern).MatchString(headers.Value):
		warnings = append(warnings, headers.Name+" is ignored: it is not a list of name=value, separated by commas")
	default:
		root.Fill(headers, headers.Value, "tracing", "headers")
	}
	if service := variables["OTEL_SERVICE_NAME"]; service.Value != "" {
		root.Fill(service, service.Value, "tracing", "serviceName")
	}
	return warnings
}
