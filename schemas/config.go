package schemas

import (
	"cmp"
	"log/slog"
	"time"

	"tutti/internal/base/tlsconfig"
	"tutti/internal/core"
	"tutti/internal/core/datamodel"
	"tutti/schemas/external"
)

// Defaults of Config.
const (
	// DefaultTimeout is the default of Config.Timeout.
	DefaultTimeout = 5 * time.Second
	// DefaultTimeoutInAll is the default of Config.TimeoutInAll.
	DefaultTimeoutInAll = time.Minute
	// DefaultValidationTime is the default of Config.ValidationTime.
	DefaultValidationTime = 10 * time.Second
	// DefaultCacheBytes is the default of Config.CacheBytes.
	DefaultCacheBytes = 64 << 20
	// DefaultUserAgent is the default of Config.UserAgent.
	DefaultUserAgent = "tutti"
	// DefaultRetryWait is the default of Config.RetryWait.
	DefaultRetryWait = 200 * time.Millisecond
)

// Config changes how a Service works. The zero value is the default of CONTRACT section 9.
type Config struct {
	// AllowOlder accepts analyses of an older version of their type; by default only the latest is accepted.
	AllowOlder bool
	// DefaultOptions apply to analysis types whose options were never set. Default: none.
	DefaultOptions datamodel.AnalysisOptions
	// AllowedHosts are the only hosts that external validations may call, each a name or an address, with a port or for all
	// ports. Only listed hosts may have private or loopback addresses. Default: every public address.
	AllowedHosts []string
	// TLS is for the connections to external services.
	TLS tlsconfig.Files
	// Timeout bounds one call of an external service, without the wait for other calls of the host. Default DefaultTimeout.
	Timeout time.Duration
	// TimeoutInAll bounds all calls for one analysis together, with all waits. Values that have not been checked by then are
	// reported as retryable violations. Default DefaultTimeoutInAll.
	TimeoutInAll time.Duration
	// ValidationTime bounds the validation of one analysis by its schema, without external services. A version that takes longer
	// accepts no analyses until a later version is registered. Default DefaultValidationTime.
	ValidationTime time.Duration
	// RetryWait is the wait before the first retry of an external call. It doubles for the second one; jitter shortens both by up to
	// half. Default DefaultRetryWait.
	RetryWait time.Duration
	// Shared is set if other processes register analysis types in the same store. The latest version is then read from the store:
	// for every validation, and at most once a second for reading a schema. Default: this process is the only one.
	Shared bool
	// CacheBytes bounds the cached bodies, in bytes. Default DefaultCacheBytes.
	CacheBytes int64
	// UserAgent is sent to external services. Default DefaultUserAgent.
	UserAgent string
	// Logger receives messages for the operator. Default: nothing is logged.
	Logger *slog.Logger
	// Metrics counts validations; nil counts nothing.
	Metrics *Metrics
	// Now is the clock. Default time.Now.
	Now func() time.Time
}

func (c Config) withDefaults() Config {
	c.Timeout = cmp.Or(c.Timeout, DefaultTimeout)
	c.TimeoutInAll = cmp.Or(c.TimeoutInAll, DefaultTimeoutInAll)
	c.ValidationTime = cmp.Or(c.ValidationTime, DefaultValidationTime)
	c.RetryWait = cmp.Or(c.RetryWait, DefaultRetryWait)
	c.CacheBytes = cmp.Or(c.CacheBytes, DefaultCacheBytes)
	c.UserAgent = cmp.Or(c.UserAgent, DefaultUserAgent)
	c.Logger = cmp.Or(c.Logger, slog.New(slog.DiscardHandler))
	if c.Now == nil {
		c.Now = time.Now
	}
	return c
}

func (c Config) validate() error {
	if c.Timeout < 0 || c.TimeoutInAll < 0 || c.ValidationTime < 0 || c.RetryWait < 0 || c.CacheBytes < 0 {
		return core.NewError(core.CodeInvalid, "the time-out, the wait and the cache of schemas must not be negative")
	}
	if f := external.CheckExternals(c.DefaultOptions.ExternalValidations); len(f.Violations) > 0 {
		return f.Invalid(errorIDParameter, "the default options of schemas are not valid")
	}
	return nil
}

// effective returns the options with the defaults for those that were never set. Its lists are never nil.
func (c Config) effective(options datamodel.AnalysisOptions) datamodel.AnalysisOptions {
	options = merged(options, c.DefaultOptions)
	if options.FileTypes == nil {
		options.FileTypes = []string{}
	}
	if options.ExternalValidations == nil {
		options.ExternalValidations = []datamodel.ExternalValidation{}
	}
	return options
}
