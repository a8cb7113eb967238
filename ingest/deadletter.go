package ingest

import (
	"context"
	"fmt"

	"golang.org/x/sync/errgroup"

	"tutti/ingest/event"
	"tutti/internal/core"
)

// Sources of the dead letters of messages.
const (
	sourceWebhook = "webhook"
	sourceKafka   = "kafka "
)

// messageDeadLetter returns the dead letter of a rejected message.
func messageDeadLetter(fault *event.Rejection, repository, source, position string, document []byte) core.DeadLetter {
	reason := core.ReasonNotUnderstood
	if fault.Kind == event.UnknownRepository {
		reason, repository = core.ReasonUnknownRepository, fault.Server
	}
	kept := core.NewDeadLetterDocument(document)
	return core.DeadLetter{
		Repository: repository, Organization: fault.Organization, RecordID: fault.RecordID,
		Reason: reason, Hint: fault.Message, Attempts: 1, Source: source, Position: position,
		Document: kept.Bytes, Size: kept.Size, SHA256: kept.SHA256, Truncated: kept.Truncated,
	}
}

// putDeadLetters stores dead letters, several at a time.
func (s *sender) putDeadLetters(ctx context.Context, letters []core.DeadLetter) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(publishConcurrency)
	for _, l := range letters {
		g.Go(func() error {
			if err := s.cfg.DeadLetters.Put(ctx, l); err != nil {
				return fmt.Errorf("storing an event that could not be decoded: %w", err)
			}
			return nil
		})
	}
	return g.Wait()
}

func (s *sender) deadLetterID(l core.DeadLetter) string {
	if s.cfg.DeadLetterIndex == nil {
		return ""
	}
	return s.cfg.DeadLetterIndex.DeadLetterID(l)
}
