// Package span makes OpenTelemetry spans below the one of a context, and carries their identity in the form of the W3C's traceparent
// (Trace Context, section 3.2). Where the context has no recorded span it does nothing and allocates nothing, so that its callers need
// not know whether tracing is on: only a Tracer starts spans without a recorded parent, and the process has none when tracing is off.
//
// Names and attributes are bounded words, codes and numbers, and ids only where log lines have them: never values of filters, texts of
// queries or documents. It imports internal/core only.
package span
