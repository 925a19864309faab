package shop;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;

/**
 * A Kafka for tests: {@code odradek serve --ephemeral --json}, and its control channel.
 *
 * <p>It ends with {@link #close}, and with this JVM, however that one ends: its standard input is a
 * pipe from here.
 */
final class Odradek implements AutoCloseable {
    private static final ObjectMapper JSON = new ObjectMapper();

    private final HttpClient http = HttpClient.newHttpClient();
    private final Process process;
    private final JsonNode ready;

    /** Starts it; {@code arguments} such as "--brokers", "3" are those of {@code odradek serve}. */
    Odradek(String... arguments) throws IOException {
        List<String> command = new ArrayList<>(List.of("odradek", "serve", "--ephemeral", "--json"));
        command.addAll(List.of(arguments));
        process = new ProcessBuilder(command)
                .redirectError(ProcessBuilder.Redirect.INHERIT)
                .start();
        BufferedReader output = new BufferedReader(
                new InputStreamReader(process.getInputStream(), StandardCharsets.UTF_8));
        String line = output.readLine();
        if (line == null) {
            throw new IOException("odradek did not start; what it printed says why");
        }
        ready = JSON.readTree(line);
    }

    /** The address to give to clients. */
    String bootstrapServers() {
        return ready.get("bootstrap_servers").asText();
    }

    /** What a GET answers, such as {@code get("/topics/orders")}. */
    JsonNode get(String path) throws IOException, InterruptedException {
        return send(request(path).GET());
    }

    /** What a POST answers, such as {@code post("/time/advance", Map.of("hours", 2))}. */
    JsonNode post(String path, Map<String, ?> arguments) throws IOException, InterruptedException {
        String body = JSON.writeValueAsString(arguments);
        return send(request(path).POST(HttpRequest.BodyPublishers.ofString(body)));
    }

    /** Waits for a condition, such as {@code await("group_stable", Map.of("group", "shippers"))}. */
    void await(String condition, Map<String, ?> arguments) throws IOException, InterruptedException {
        Map<String, Object> all = new java.util.HashMap<>(arguments);
        all.put("condition", condition);
        post("/wait", all);
    }

    /** Ends it at once: closing its standard input is enough. */
    @Override
    public void close() throws IOException, InterruptedException {
        process.getOutputStream().close();
        process.waitFor();
    }

    private HttpRequest.Builder request(String path) {
        return HttpRequest.newBuilder(URI.create(ready.get("control").asText() + path));
    }

    private JsonNode send(HttpRequest.Builder request) throws IOException, InterruptedException {
        HttpResponse<String> answer =
                http.send(request.build(), HttpResponse.BodyHandlers.ofString());
        JsonNode body = JSON.readTree(answer.body());
        if (answer.statusCode() != 200) {
            throw new AssertionError(body.get("error").asText());
        }
        return body;
    }
}
