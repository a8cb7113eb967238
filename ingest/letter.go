package ingest

import (
	"context"
	"fmt"

	"golang.org/x/sync/errgroup"

	"tutti/internal/core"
)

// Sources of the letters of messages.
const (
	sourceWebhook = "webhook"
	sourceKafka   = "kafka "
)

// letterOf makes the letter of a message that came to nothing.
func letterOf(fault *Fault, repository, source, position string, document []byte) core.DeadLetter {
	reason := core.ReasonNotUnderstood
	if fault.Kind == FaultUnknownRepository {
		reason, repository = core.ReasonUnknownRepository, fault.Server
	}
	kept := core.NewDeadLetterDocument(document)
	return core.DeadLetter{
		Repository: repository, Organization: fault.Organization, RecordID: fault.RecordID,
		Reason: reason, Hint: fault.Message, Attempts: 1, Source: source, Position: position,
		Document: kept.Bytes, Size: kept.Size, SHA256: kept.SHA256, Truncated: kept.Truncated,
	}
}

// keep stores letters, several at a time.
func (s *Service) keep(ctx context.Context, letters []core.DeadLetter) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(parallel)
	for _, l := range letters {
		g.Go(func() error {
			if err := s.cfg.Letters.Put(ctx, l); err != nil {
				return fmt.Errorf("keeping an event that was not understood: %w", err)
			}
			return nil
		})
	}
	return g.Wait()
}

func (s *Service) letterID(l core.DeadLetter) string {
	if s.cfg.LetterIndex == nil {
		return ""
	}
	return s.cfg.LetterIndex.LetterID(l)
}
