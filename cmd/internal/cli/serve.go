package cli

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"runtime"
	"strings"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"

	"perfsim/cmd/internal/serve"
	"perfsim/io/format"
)

func newServeCommand() *cobra.Command {
	opt := serve.DefaultOptions()
	opt.Jobs = runtime.GOMAXPROCS(0)
	var listen, unix, tokenFile string
	var stdio bool
	var body, unwrapped, held = humanize.IBytes(uint64(opt.MaxBody)), humanize.IBytes(uint64(opt.MaxUnwrapped)), humanize.IBytes(uint64(opt.Held))
	c := &cobra.Command{
		Use:   "serve [flags]",
		Short: "Answer predictions over HTTP or JSON lines until Ctrl-C",
		Long: `serve stays in memory and answers what run, explain, whatif and diff answer
with --json: over HTTP on the loopback interface, on a unix socket, or as JSON
lines on standard input and output (--stdio). The module is the body of a
request, a file below a --root, or one that the server holds from an earlier
request, with changes of single instructions. GET /openapi.json describes all
requests and answers, docs/serve.md explains them.

Kernel sources (Python) are not executed unless --allow-python says so. An
address that other machines reach needs a token: --token-file, or the variable
PERFSIM_TOKEN; clients send it as "Authorization: Bearer TOKEN".`,
		Example: `  perfsim serve --listen 127.0.0.1:8080
  curl --data-binary @module.bir.json \
      'http://127.0.0.1:8080/v1/predict?machine=trn2'
  perfsim serve --unix /tmp/perfsim.sock --root ~/kernels
  echo '{"call":"predict","path":"a.bir.json"}' | perfsim serve --stdio --root .`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := checkServing(&opt, listen, unix, stdio, c.Flags().Changed("listen")); err != nil {
				return err
			}
			for _, x := range []struct {
				flag, text string
				to         *int64
			}{{"max-body", body, &opt.MaxBody}, {"max-unwrapped", unwrapped, &opt.MaxUnwrapped}, {"held", held, &opt.Held}} {
				n, err := humanize.ParseBytes(x.text)
				if err != nil || n < 1 || n > 1<<40 {
					return usagef("--%s %q is not a size such as 64MiB", x.flag, x.text)
				}
				*x.to = int64(n)
			}
			var err error
			if opt.Token, err = readToken(tokenFile); err != nil {
				return err
			}
			opt.Version = version
			opt.Log = func(line string) { fmt.Fprintln(c.ErrOrStderr(), "perfsim: "+line) }
			s, err := serve.New(opt)
			if err != nil {
				return err
			}
			ctx := c.Context()
			if stdio {
				return s.Lines(ctx, c.InOrStdin(), format.Raw(c.OutOrStdout()))
			}
			l, name, err := listenOn(ctx, listen, unix, opt.Token != "")
			if err != nil {
				return err
			}
			sayf(format.Raw(c.ErrOrStderr()), "listening on %s\n", name)
			return s.Serve(ctx, l)
		},
	}
	fl := c.Flags()
	fl.StringVar(&listen, "listen", "127.0.0.1:0", "address to listen on; port 0 takes a free one; one that other machines reach needs a token")
	fl.StringVar(&unix, "unix", "", "listen on this unix socket instead")
	fl.BoolVar(&stdio, "stdio", false, "answer JSON lines of standard input on standard output instead")
	fl.StringVar(&tokenFile, "token-file", "", "file with the token that requests must bring; default: the variable "+tokenVariable)
	fl.StringArrayVar(&opt.Roots, "root", nil, "folder below which requests may name files; may be repeated")
	fl.BoolVar(&opt.AllowPython, "allow-python", false, "execute kernel sources (Python) that requests send or name")
	fl.StringVar(&opt.Machine, "machine", "", "machine, by name or description file, of requests that name none; default: what the module was made for, else trn2")
	fl.IntVarP(&opt.Jobs, "jobs", "j", opt.Jobs, "requests that are worked on at the same time")
	fl.IntVar(&opt.Queue, "queue", opt.Queue, "requests that may wait for that; further ones are refused with 503")
	fl.IntVar(&opt.Connections, "connections", opt.Connections, "open connections; further ones wait")
	fl.DurationVar(&opt.Timeout, "timeout", opt.Timeout, "most time of one request, and of sending its body")
	fl.StringVar(&body, "max-body", body, "largest body, line or file of a request")
	fl.StringVar(&unwrapped, "max-unwrapped", unwrapped, "most bytes that one of these may decompress to")
	fl.StringVar(&held, "held", held, "memory for modules that are held for later requests")
	return c
}

// checkServing finds wrong flags.
func checkServing(opt *serve.Options, listen, unix string, stdio, listenGiven bool) error {
	switch {
	case stdio && (listenGiven || unix != ""), unix != "" && listenGiven:
		return usagef("--listen, --unix and --stdio: one of them")
	case opt.Jobs < 1:
		return usagef("--jobs %d is not at least 1", opt.Jobs)
	case opt.Queue < 0:
		return usagef("--queue %d is not at least 0", opt.Queue)
	case opt.Connections < 1:
		return usagef("--connections %d is not at least 1", opt.Connections)
	case opt.Timeout < time.Millisecond:
		return usagef("--timeout %v is not at least 1ms", opt.Timeout)
	}
	if _, _, err := net.SplitHostPort(listen); err != nil {
		return usagef("--listen %q is not HOST:PORT", listen)
	}
	return nil
}

// shortestToken is how many bytes a token has at least.
const shortestToken = 16

// readToken returns the token of the file at path, or where path is "" of the
// environment; "" where there is none.
func readToken(path string) (string, error) {
	token := os.Getenv(tokenVariable)
	if path != "" {
		b, err := os.ReadFile(path)
		if err != nil {
			return "", err
		}
		token = strings.TrimSpace(string(b))
		if token == "" {
			return "", fmt.Errorf("%s has no token", path)
		}
	}
	if token != "" && len(token) < shortestToken {
		return "", fmt.Errorf("the token has %d bytes, not at least %d", len(token), shortestToken)
	}
	return token, nil
}

// listenOn opens the socket to listen on and returns its URL.
func listenOn(ctx context.Context, listen, unix string, token bool) (net.Listener, string, error) {
	var open net.ListenConfig
	if unix != "" {
		if err := removeDead(unix); err != nil {
			return nil, "", err
		}
		l, err := open.Listen(ctx, "unix", unix)
		if err == nil {
			err = os.Chmod(unix, 0o600)
		}
		return l, "unix:" + unix, err
	}
	host, _, err := net.SplitHostPort(listen)
	if err != nil {
		return nil, "", usageError{err}
	}
	if !token && !loopback(host) {
		return nil, "", usagef("--listen %s: other machines reach this address, so it needs a token: --token-file FILE or the variable %s", listen, tokenVariable)
	}
	l, err := open.Listen(ctx, "tcp", listen)
	if err != nil {
		return nil, "", err
	}
	return l, "http://" + l.Addr().String(), nil
}

// loopback reports whether only this machine reaches a host.
func loopback(host string) bool {
	if host == "localhost" {
		return true
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}

// removeDead removes a socket that nobody listens on any more.
func removeDead(path string) error {
	st, err := os.Lstat(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if st.Mode()&os.ModeSocket == 0 {
		return fmt.Errorf("%s is there already and is no socket", path)
	}
	if c, err := net.Dial("unix", path); err == nil {
		c.Close()
		return fmt.Errorf("%s: another process listens there", path)
	}
	return os.Remove(path)
}
