package span

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"
)

// maxLinks bounds the links of the span of a Group.
const maxLinks = 32

// Group collects the spans that one piece of work serves, such as those of the records of a bulk request. The zero Group is empty. It is
// not safe for concurrent use.
type Group struct {
	first trace.Span
	// links are those of the spans after the first, last is that of the newest span, more the number of spans without a link.
	links []trace.Link
	last  trace.SpanID
	more  int64
}

// Add adds the span of ctx, if it is recorded. A span that is added several times in a row counts once.
func (g *Group) Add(ctx context.Context) {
	s := trace.SpanFromContext(ctx)
	if !s.IsRecording() {
		return
	}
	is := s.SpanContext()
	switch {
	case is.SpanID() == g.last:
		return
	case g.first == nil:
		g.first = s
	case len(g.links) < maxLinks:
		g.links = append(g.links, trace.Link{SpanContext: is})
	default:
		g.more++
	}
	g.last = is.SpanID()
}

// Call starts the span of a call to another server for the group: below its first span, with links to the others, of which there are at
// most 32; the attribute links_dropped counts the rest. The context of an empty group is ctx.
func (g *Group) Call(ctx context.Context, name string) (context.Context, Span) {
	if g.first == nil {
		return ctx, Span{}
	}
	ctx, s := g.first.TracerProvider().Tracer(scope).Start(trace.ContextWithSpan(ctx, g.first), name,
		trace.WithSpanKind(trace.SpanKindClient), trace.WithLinks(g.links...))
	if g.more > 0 {
		s.SetAttributes(attribute.Int64("links_dropped", g.more))
	}
	return ctx, recorded(s)
}
