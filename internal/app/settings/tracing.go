package settings

import (
	"tutti/internal/app/tracing"
	"tutti/internal/config"
)

// Tracing returns the settings of the receiver of traces.
func Tracing(t config.Tracing, version string) tracing.Config {
	return tracing.Config{
		URL: t.URL(), TLS: t.TLS.Files("tracing"), Headers: t.HeaderValues(), SampleRatio: t.SampleRatio, Service: t.ServiceName, Version: version,
	}
}
