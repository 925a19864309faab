package odradek.interop;

import java.io.ByteArrayOutputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.function.Function;
import org.apache.kafka.common.utils.Exit;

/**
 * Kafka's command-line tools, many of them in one process: to start a Java for each takes seconds.
 *
 * <p>It prints the port that it listens at, and ends with its standard input. A connection is one
 * command: a class and its arguments in UTF-8, with NUL between them, up to the end of the stream.
 * The answer is the exit code and the length of standard output, of four bytes each, then standard
 * output, then standard error. What a tool leaves for the end of its process is not done.
 */
public final class Tools {
    private static final InheritableThreadLocal<Command> COMMAND = new InheritableThreadLocal<>();

    private Tools() {}

    public static void main(String[] arguments) throws IOException {
        InputStream input = System.in;
        PrintStream output = System.out;
        System.setIn(InputStream.nullInputStream());
        System.setOut(new PrintStream(new Printed(command -> command.output), true));
        System.setErr(new PrintStream(new Printed(command -> command.errors), true));
        Exit.setExitProcedure((code, message) -> exit(code));
        Exit.setHaltProcedure((code, message) -> exit(code));
        ServerSocket server = new ServerSocket(0, 50, InetAddress.getLoopbackAddress());
        output.println(server.getLocalPort());
        Thread accepting = new Thread(() -> accept(server));
        accepting.setDaemon(true);
        accepting.start();
        input.readAllBytes();
        Runtime.getRuntime().halt(0);
    }

    private static void accept(ServerSocket server) {
        while (true) {
            try {
                Socket connection = server.accept();
                new Thread(() -> answer(connection)).start();
            } catch (IOException error) {
                throw new IllegalStateException(error);
            }
        }
    }

    private static void answer(Socket connection) {
        Command command = new Command();
        COMMAND.set(command);
        try (connection) {
            byte[] sent = connection.getInputStream().readAllBytes();
            command.run(new String(sent, StandardCharsets.UTF_8).split("\0", -1));
            DataOutputStream answer = new DataOutputStream(connection.getOutputStream());
            answer.writeInt(command.code);
            answer.writeInt(command.output.size());
            command.output.writeTo(answer);
            command.errors.writeTo(answer);
            answer.flush();
        } catch (IOException error) {
            throw new IllegalStateException(error);
        }
    }

    private static void exit(int code) {
        COMMAND.get().end(code);
        throw new Ended();
    }

    /** What leaves a tool where it would end its process. */
    private static final class Ended extends Error {}

    /** A tool that runs, and what it has printed. */
    private static final class Command {
        final ByteArrayOutputStream output = new ByteArrayOutputStream();
        final ByteArrayOutputStream errors = new ByteArrayOutputStream();
        int code;
        private boolean ended;

        void run(String[] words) {
            String[] arguments = Arrays.copyOfRange(words, 1, words.length);
            try {
                Class.forName(words[0]).getMethod("main", String[].class).invoke(null, (Object) arguments);
                end(0);
            } catch (InvocationTargetException thrown) {
                if (!(thrown.getCause() instanceof Ended)) {
                    System.err.print("Exception in thread \"main\" ");
                    thrown.getCause().printStackTrace();
                    end(1);
                }
            } catch (ReflectiveOperationException error) {
                error.printStackTrace();
                end(1);
            }
        }

        /** The first end counts, and nothing is printed after it: a process would be gone. */
        synchronized void end(int code) {
            if (!ended) {
                ended = true;
                this.code = code;
            }
        }

        synchronized void print(ByteArrayOutputStream stream, byte[] bytes, int from, int length) {
            if (!ended) {
                stream.write(bytes, from, length);
            }
        }
    }

    /** A stream of whatever command the thread that prints works for. */
    private static final class Printed extends OutputStream {
        private final Function<Command, ByteArrayOutputStream> stream;

        Printed(Function<Command, ByteArrayOutputStream> stream) {
            this.stream = stream;
        }

        @Override
        public void write(int value) {
            write(new byte[] {(byte) value}, 0, 1);
        }

        @Override
        public void write(byte[] bytes, int from, int length) {
            Command command = COMMAND.get();
            if (command != null) {
                command.print(stream.apply(command), bytes, from, length);
            }
        }
    }
}
