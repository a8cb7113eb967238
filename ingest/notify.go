package ingest

import (
	"context"
	"fmt"
	"strconv"
	"sync"

	"github.com/tidwall/gjson"

	"tutti/ingest/event"
	"tutti/ingest/signing"
	"tutti/internal/core"
)

const (
	// maxEvents is the largest number of events in one webhook notification.
	maxEvents = 10_000
	// maxWebhookDeadLetters is how many undecodable events of one repository are stored; without this limit
	// any caller of the webhook could fill the disk.
	maxWebhookDeadLetters = 1000
)

// Notify processes the body of a webhook notification for a repository: one event, or an array of at most 10,000.
// signature is the value of X-Signature-256, which is checked if the repository has a secret (CONTRACT section 1,
// Notifications in). Notify returns after the queue has stored every Request and dead letter; after an error the
// whole body may be sent again. Of several events for one record the last one counts. An invalid event blocks no
// other: it is in the result's Errors and stored as a dead letter, unless its repository has 1,000 already. If the
// same signed body was accepted within the last week, its removals are as of that first time, so that a repetition
// removes nothing newer. Errors: CodeInvalid for a body that is not a JSON object or array of objects, with the JSON
// pointer of the problem, CodeNotFound for an unknown repository, CodeUnauthenticated for a missing or wrong
// signature, CodeOverloaded or CodeUnavailable from the queue.
func (s *Service) Notify(
	ctx context.Context, repository string, body []byte, signature, requestID string,
) (core.NotificationResult, error) {
	repo, err := s.repository(repository)
	if err != nil {
		return core.NotificationResult{}, err
	}
	if secret := s.cfg.Sources[repository].WebhookSecret; secret != "" {
		if err := signing.Check(secret, body, signature); err != nil {
			return core.NotificationResult{}, err
		}
	}
	events, err := splitBody(body)
	if err != nil {
		return core.NotificationResult{}, err
	}
	in := newRequestSet(core.CauseWebhook, orNewID(requestID))
	firstSeen := sync.OnceValues(func() (core.Version, error) { return s.firstSeen(ctx, repository, body) })
	removes := false
	var faults []rejectedEvent
	for _, given := range events {
		e, rejection := s.events.ReadObject(given.object)
		if rejection == nil {
			_, rejection = s.resolve(e, eventTargets{repositories: []core.Repository{repo}})
		}
		if rejection != nil {
			faults = append(faults, rejectedEvent{pointedEvent: given, rejection: rejection})
			continue
		}
		s.logUnknown(e, "webhook "+repository)
		asOf := core.Version(0)
		if e.Remove {
			removes = true
			if asOf, err = firstSeen(); err != nil {
				return core.NotificationResult{}, err
			}
		}
		in.add(e, repository, asOf, "")
	}
	if err := s.submit(ctx, in); err != nil {
		return core.NotificationResult{}, err
	}
	if removes {
		if err := s.remember(ctx, repository, body); err != nil {
			return core.NotificationResult{}, err
		}
	}
	notified := core.NotificationResult{Accepted: len(events) - len(faults)}
	if notified.Errors, err = s.keepRejected(ctx, repository, faults); err != nil {
		return core.NotificationResult{}, err
	}
	s.cfg.Metrics.notify(viaWebhook, resultAccepted, notified.Accepted)
	for _, f := range faults {
		s.cfg.Metrics.notify(viaWebhook, resultOf(f.rejection), 1)
	}
	return notified, nil
}

// Signed reports whether webhook notifications for a repository must carry a signature; false for an unknown
// repository.
func (s *Service) Signed(repository string) bool {
	return s.cfg.Sources[repository].WebhookSecret != ""
}

// pointedEvent is one event of a body, with its JSON pointer.
type pointedEvent struct {
	pointer string
	object  gjson.Result
}

type rejectedEvent struct {
	pointedEvent
	rejection *event.Rejection
}

// splitBody returns the events of a body.
func splitBody(body []byte) ([]pointedEvent, error) {
	if rejection := event.CheckJSON(body, "the body"); rejection != nil {
		return nil, invalidBody(rejection.Message)
	}
	root := gjson.ParseBytes(body)
	if root.IsObject() {
		return []pointedEvent{{object: root}}, nil
	}
	if !root.IsArray() {
		return nil, invalidBody("the body is neither a JSON object nor an array")
	}
	var events []pointedEvent
	var err error
	root.ForEach(func(_, value gjson.Result) bool {
		pointer := "/" + strconv.Itoa(len(events))
		switch {
		case len(events) == maxEvents:
			err = invalidBody(fmt.Sprintf("%s is over the limit: a notification has at most %d events", pointer, maxEvents))
		case !value.IsObject():
			err = invalidBody(pointer + " is not a JSON object")
		default:
			events = append(events, pointedEvent{pointer, value})
		}
		return err == nil
	})
	return events, err
}

func invalidBody(message string) error {
	return &core.Error{Code: core.CodeInvalid, Message: message, Hint: "send one event as a JSON object, or an array of them"}
}

// keepRejected stores rejected events as dead letters, up to the limit, and returns the errors of all of them.
func (s *Service) keepRejected(ctx context.Context, repository string, faults []rejectedEvent) ([]core.EventError, error) {
	if len(faults) == 0 {
		return nil, nil
	}
	reported := make([]core.EventError, len(faults))
	for i, f := range faults {
		reported[i] = core.EventError{Pointer: f.pointer, Message: f.rejection.Message}
		if f.rejection.Member != "" {
			reported[i].Pointer += "/" + f.rejection.Member
		}
	}
	if s.cfg.DeadLetters == nil {
		return reported, nil
	}
	// Concurrent notifications must not both use the same remaining number.
	unlock, err := s.deadLetterLocks.Lock(ctx, repository)
	if err != nil {
		return nil, core.WrapError(core.CodeUnavailable, "the notification was cancelled", err)
	}
	defer unlock()
	room := min(s.remainingDeadLetters(repository), len(faults))
	if room < len(faults) {
		s.cfg.Logger.WarnContext(ctx, "too many dead letters: events that cannot be decoded are no longer stored",
			"repository", repository, "not_kept", len(faults)-room)
	}
	letters := make([]core.DeadLetter, room)
	for i, f := range faults[:room] {
		letters[i] = messageDeadLetter(f.rejection, repository, sourceWebhook, "", []byte(f.object.Raw))
		reported[i].DeadLetterID = s.deadLetterID(letters[i])
	}
	return reported, s.putDeadLetters(ctx, letters)
}

// remainingDeadLetters returns how many more dead letters the webhook of a repository may store.
func (s *Service) remainingDeadLetters(repository string) int {
	if s.cfg.DeadLetterIndex == nil {
		return maxWebhookDeadLetters
	}
	return max(0, maxWebhookDeadLetters-s.cfg.DeadLetterIndex.CountReason(repository, core.ReasonNotUnderstood))
}

// resultOf returns the label of a rejection in tutti_notifications_total.
func resultOf(r *event.Rejection) string {
	if r.Kind == event.NotUnderstood {
		return resultNotUnderstood
	}
	return resultOtherServer
}
