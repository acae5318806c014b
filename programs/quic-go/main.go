// Sends and fetches GET /BYTES over QUIC with quic-go, as hq-interop of the QUIC interop runner:
//
//	quic-go server ADDRESS:PORT CERT KEY
//	quic-go client ADDRESS:PORT BYTES CA
//
// The server prints what its stack has counted as lost, packets. With QLOGDIR set, it writes a qlog. The
// client writes its TLS secrets to SSLKEYLOGFILE.
package main

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/qlog"
)

const (
	protocol = "hq-interop"
	// Longest request, bytes.
	requestMax = 64
)

func serve(address, certificate, key string) error {
	pair, err := tls.LoadX509KeyPair(certificate, key)
	if err != nil {
		return err
	}
	config := &tls.Config{Certificates: []tls.Certificate{pair}, NextProtos: []string{protocol}}
	listener, err := quic.ListenAddr(address, config, &quic.Config{Tracer: qlog.DefaultConnectionTracer})
	if err != nil {
		return err
	}
	asked, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	var answers sync.WaitGroup
	defer answers.Wait()
	for {
		connection, err := listener.Accept(asked)
		if err != nil {
			return ended(asked, err)
		}
		answers.Go(func() { answer(asked, connection) })
	}
}

// answer sends what is asked for until either end closes the connection.
func answer(asked context.Context, connection *quic.Conn) {
	for {
		stream, err := connection.AcceptStream(asked)
		if err != nil {
			fmt.Printf("lost %d\n", connection.ConnectionStats().PacketsLost)
			return
		}
		go func() {
			defer stream.Close()
			request, err := bufio.NewReader(io.LimitReader(stream, requestMax)).ReadString('\n')
			name, isGet := strings.CutPrefix(strings.TrimSpace(request), "GET /")
			size, wrong := strconv.ParseInt(name, 10, 64)
			if (err != nil && !errors.Is(err, io.EOF)) || !isGet || wrong != nil {
				stream.CancelWrite(1)
				return
			}
			_, _ = io.CopyN(stream, zeros{}, size)
		}()
	}
}

// zeros is a file that never ends.
type zeros struct{}

func (zeros) Read(buffer []byte) (int, error) {
	clear(buffer)
	return len(buffer), nil
}

func fetch(address, bytes, authority string) error {
	text, err := os.ReadFile(authority)
	if err != nil {
		return err
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(text) {
		return fmt.Errorf("%s has no certificate", authority)
	}
	config := &tls.Config{RootCAs: roots, ServerName: "server.knee", NextProtos: []string{protocol}}
	if name := os.Getenv("SSLKEYLOGFILE"); name != "" {
		secrets, err := os.OpenFile(name, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			return err
		}
		defer secrets.Close()
		config.KeyLogWriter = secrets
	}
	asked, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	connection, err := quic.DialAddr(asked, address, config, &quic.Config{
		// Large enough for any path, so that the sender's window decides.
		InitialStreamReceiveWindow:     64 << 20,
		MaxStreamReceiveWindow:         64 << 20,
		InitialConnectionReceiveWindow: 96 << 20,
		MaxConnectionReceiveWindow:     96 << 20,
	})
	if err != nil {
		return err
	}
	stream, err := connection.OpenStreamSync(asked)
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintf(stream, "GET /%s\r\n", bytes); err != nil {
		return err
	}
	if err := stream.Close(); err != nil {
		return err
	}
	context.AfterFunc(asked, func() { stream.CancelRead(0) })
	size, err := io.Copy(io.Discard, stream)
	_ = connection.CloseWithError(0, "done")
	fmt.Println(size)
	if err != nil {
		return ended(asked, err)
	}
	if strconv.FormatInt(size, 10) != bytes {
		return fmt.Errorf("%d of %s bytes came", size, bytes)
	}
	return nil
}

// ended forgives an error of whoever was asked to end.
func ended(asked context.Context, err error) error {
	if asked.Err() != nil {
		return nil
	}
	return err
}

func main() {
	arguments := os.Args[1:]
	err := errors.New("usage: quic-go server ADDRESS:PORT CERT KEY | client ADDRESS:PORT BYTES CA")
	if len(arguments) == 4 && arguments[0] == "server" {
		err = serve(arguments[1], arguments[2], arguments[3])
	} else if len(arguments) == 4 && arguments[0] == "client" {
		err = fetch(arguments[1], arguments[2], arguments[3])
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
