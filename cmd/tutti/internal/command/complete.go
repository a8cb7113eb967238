package command

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"tutti/cmd/tutti/internal/client"
)

const (
	// completionTimeout is the time limit for a server's answer to a completion.
	completionTimeout = time.Second
	// CompletionLimit is the number of ids that a completion offers.
	CompletionLimit = 50
)

// Complete sets the completions of a flag of cmd to values. Files are never completed.
func Complete(cmd *cobra.Command, flag string, values ...string) {
	// It fails for a flag that does not exist or already has completions; the tests of the completion detect both.
	_ = cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp))
}

// CompleteIDs returns a function that completes the first most arguments with ids from the server. If the server does not answer
// within completionTimeout, it completes nothing and prints nothing.
func CompleteIDs(
	r *Remote, most int, ids func(context.Context, *client.Client) ([]cobra.Completion, error),
) cobra.CompletionFunc {
	return func(cmd *cobra.Command, given []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(given) >= most {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		c, err := r.Client(cmd)
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		ctx := cmd.Context()
		if ctx == nil {
			ctx = context.Background()
		}
		ctx, cancel := context.WithTimeout(ctx, completionTimeout)
		defer cancel()
		found, err := ids(ctx, c)
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return found, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
	}
}
