package odradek.schemas;

import java.io.BufferedReader;
import java.io.BufferedWriter;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.OutputStreamWriter;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.HexFormat;
import java.util.List;
import org.apache.kafka.common.message.ApiMessageType;
import org.apache.kafka.common.message.RequestHeaderData;
import org.apache.kafka.common.message.ResponseHeaderData;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.Message;
import org.apache.kafka.common.protocol.MessageSizeAccumulator;
import org.apache.kafka.common.protocol.ObjectSerializationCache;

/**
 * Reads messages with the classes that Kafka generates from its definitions, and writes them.
 *
 * <p>Without arguments it takes lines of what, version and bytes in hex, where what is "request"
 * or "response" and an API key, for a frame with its header, or else the name of a schema that
 * has none.
 * For each it prints the bytes that Kafka writes, or "error" and why there are none.
 *
 * <p>With the argument "versions" it prints a line for each API: its key, and the first and last
 * version of its request. With names of schemas after it, it prints such lines for those.
 */
public final class ReadAndWrite {
    private static final List<String> PLACES = List.of(
            "common.message.%s",
            "common.message.%sData",
            "coordinator.group.generated.%s",
            "coordinator.transaction.generated.%s",
            "coordinator.share.generated.%s");

    private ReadAndWrite() {}

    public static void main(String[] arguments) throws IOException {
        var out = new BufferedWriter(new OutputStreamWriter(System.out, StandardCharsets.US_ASCII));
        if (arguments.length > 1) {
            for (String name : List.of(arguments).subList(1, arguments.length)) {
                Message message = find(name);
                out.write(name + " " + message.lowestSupportedVersion() + " "
                        + message.highestSupportedVersion() + "\n");
            }
        } else if (arguments.length > 0) {
            for (ApiMessageType api : ApiMessageType.values()) {
                out.write(api.apiKey() + " " + api.lowestSupportedVersion() + " "
                        + api.highestSupportedVersion(true) + "\n");
            }
        } else {
            var in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.US_ASCII));
            for (String line = in.readLine(); line != null; line = in.readLine()) {
                out.write(answer(line.split(" ", -1)) + "\n");
            }
        }
        out.flush();
    }

    private static String answer(String[] parts) {
        var input = new ByteBufferAccessor(ByteBuffer.wrap(HexFormat.of().parseHex(parts[parts.length - 1])));
        short version = Short.parseShort(parts[parts.length - 2]);
        try {
            byte[] written = parts.length == 4
                    ? frame(parts[0].equals("request"), Short.parseShort(parts[1]), version, input)
                    : copy(find(parts[0]), version, input);
            if (input.remaining() > 0) {
                return "error: " + input.remaining() + " bytes are left over";
            }
            return HexFormat.of().formatHex(written);
        } catch (RuntimeException error) {
            return ("error: " + error).replace('\n', ' ');
        }
    }

    private static Message find(String name) {
        for (String place : PLACES) {
            try {
                Class<?> found = Class.forName("org.apache.kafka." + place.formatted(name));
                if (Message.class.isAssignableFrom(found)) {
                    return (Message) found.getConstructor().newInstance();
                }
            } catch (ClassNotFoundException error) {
                // It is in another place.
            } catch (ReflectiveOperationException error) {
                throw new IllegalStateException(error);
            }
        }
        throw new IllegalArgumentException("Kafka has no schema called " + name);
    }

    private static byte[] frame(boolean isRequest, short key, short version, ByteBufferAccessor input) {
        ApiMessageType api = ApiMessageType.fromApiKey(key);
        byte[] header = isRequest
                ? copy(new RequestHeaderData(), api.requestHeaderVersion(version), input)
                : copy(new ResponseHeaderData(), api.responseHeaderVersion(version), input);
        byte[] body = copy(isRequest ? api.newRequest() : api.newResponse(), version, input);
        return ByteBuffer.allocate(header.length + body.length).put(header).put(body).array();
    }

    private static byte[] copy(Message message, short version, ByteBufferAccessor input) {
        message.read(input, version);
        var cache = new ObjectSerializationCache();
        var size = new MessageSizeAccumulator();
        message.addSize(size, cache, version);
        var output = ByteBuffer.allocate(size.totalSize());
        message.write(new ByteBufferAccessor(output), cache, version);
        if (output.hasRemaining()) {
            throw new IllegalStateException(output.remaining() + " bytes too many were announced");
        }
        return output.array();
    }
}
