package alert

import (
	"encoding/json"
	"time"
)

// cellState names the cell that holds the state.
const cellState = "alerts.state"

// state is what the leader stores.
type state struct {
	// Owner is the leader, empty if it has stopped. Beat changes while it lives.
	Owner string `json:"owner"`
	Beat  uint64 `json:"beat"`
	// Jobs and DeadLetters are the positions up to which changes were added to the summaries.
	Jobs        uint64 `json:"jobs"`
	DeadLetters uint64 `json:"deadLetters"`
	// PausedJobs holds the paused jobs by their ids.
	PausedJobs map[string]pausedJob `json:"pausedJobs,omitempty"`
	// Paused holds the repositories that are paused, with the time from which on.
	Paused map[string]time.Time `json:"paused,omitempty"`
	// Summaries holds what is to be sent, by the key of the target and the kind of event.
	Summaries map[string]map[Kind]*pending `json:"summaries,omitempty"`
}

type pausedJob struct {
	Repository string `json:"repository"`
	Reason     string `json:"reason"`
}

// pending is what is to be sent to one target of one kind.
type pending struct {
	// Sending is a message, which is sent with ID until the target takes or rejects it; nil for none. Waiting was added later.
	Sending *Summary `json:"sending,omitempty"`
	ID      string   `json:"id,omitempty"`
	Waiting Summary  `json:"waiting,omitzero"`
	// NotBefore is when the next attempt may begin, Failures how many failed in a row.
	NotBefore time.Time `json:"notBefore,omitzero"`
	Failures  int       `json:"failures,omitempty"`
}

// due reports whether there is something to send now. A NotBefore further ahead than farthest is of a wrong clock.
func (p *pending) due(now time.Time, farthest time.Duration) bool {
	wait := p.NotBefore.Sub(now)
	return (p.Sending != nil || p.Waiting.Count > 0) && (wait <= 0 || wait > farthest)
}

// ended records that the message was taken or rejected, and when the next one may be sent.
func (p *pending) ended(next time.Time) {
	p.Sending, p.ID, p.NotBefore, p.Failures = nil, "", next, 0
}

func decodeState(text string) (state, error) {
	var s state
	if text == "" {
		return s, nil
	}
	err := json.Unmarshal([]byte(text), &s)
	return s, err
}
