// Package tracing records spans and sends them by OTLP over HTTP, in protobuf. It is the only package that uses OpenTelemetry's SDK; the
// others make spans with internal/base/span.
//
// It sends with a client of its own instead of OpenTelemetry's otlptracehttp, which links gRPC and its gateway into the program.
package tracing
