// Package cleanup stops what was started, in reverse order.
package cleanup

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
)

// Stack is a stack of named shutdown steps, run in reverse order. The zero value is empty. It is safe for concurrent use.
type Stack struct {
	mu    sync.Mutex
	steps []step
}

type step struct {
	name string
	stop func(context.Context) error
}

// Push adds a step, which runs before those added earlier.
func (s *Stack) Push(name string, stop func(context.Context) error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.steps = append(s.steps, step{name: name, stop: stop})
}

// Run pops and runs every step, even if an earlier one failed, and joins their errors. A second call does nothing.
func (s *Stack) Run(ctx context.Context) error {
	s.mu.Lock()
	steps := s.steps
	s.steps = nil
	s.mu.Unlock()
	var errs []error
	for _, step := range slices.Backward(steps) {
		if err := step.stop(ctx); err != nil {
			errs = append(errs, fmt.Errorf("stopping %s: %w", step.name, err))
		}
	}
	return errors.Join(errs...)
}
