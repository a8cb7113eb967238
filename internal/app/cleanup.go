package app

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
)

// cleanup is a stack of named shutdown steps, run in reverse order.
type cleanup struct {
	mu    sync.Mutex
	steps []cleanupStep
}

type cleanupStep struct {
	name string
	stop func(context.Context) error
}

// push adds a step, which runs before those added earlier.
func (c *cleanup) push(name string, stop func(context.Context) error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.steps = append(c.steps, cleanupStep{name: name, stop: stop})
}

// run pops and runs every step, even if an earlier one failed, and joins their errors. A second call does nothing.
func (c *cleanup) run(ctx context.Context) error {
	c.mu.Lock()
	steps := c.steps
	c.steps = nil
	c.mu.Unlock()
	var errs []error
	for _, step := range slices.Backward(steps) {
		if err := step.stop(ctx); err != nil {
			errs = append(errs, fmt.Errorf("stopping %s: %w", step.name, err))
		}
	}
	return errors.Join(errs...)
}
