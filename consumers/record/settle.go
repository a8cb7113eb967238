package record

import (
	"context"
	"time"

	"tutti/consumers/fetch"
	"tutti/internal/core"
)

// Settle fetches req's record and writes or removes its document with a version, for a caller that has a message for several
// records. It returns the outcome of the record; OutcomeRejected if the record, or one of its documents, became a dead letter. After
// an error the record has no final outcome. organization is the one that the record was settled under, which may be another than req's.
func (w *Worker) Settle(ctx context.Context, req core.Request, version core.Version) (organization string, o core.Outcome, err error) {
	m := part{request: req, version: version}
	organization, rs, err := w.settle(ctx, m)
	switch {
	case err == nil:
		return organization, w.outcomes.CountRecord(rs), nil
	case w.loop.Stopping(ctx):
		return organization, core.OutcomeRetry, err
	case fetch.Retryable(err):
		w.outcomes.Count(core.OutcomeRetry, 1)
		return organization, core.OutcomeRetry, err
	default:
		return req.Organization, core.OutcomeRejected, w.storeDeadLetter(ctx, m, err)
	}
}

// part is one record of a message for several, as a message. The caller ends the message.
type part struct {
	request core.Request
	version core.Version
}

var _ core.Message = part{}

// Request implements core.Message.
func (p part) Request() core.Request { return p.request }

// Version implements core.Message.
func (p part) Version() core.Version { return p.version }

// Deliveries implements core.Message.
func (p part) Deliveries() int { return 1 }

// Ack implements core.Message.
func (p part) Ack(context.Context) error { return nil }

// Nak implements core.Message.
func (p part) Nak(time.Duration) error { return nil }

// InProgress implements core.Message.
func (p part) InProgress() error { return nil }
