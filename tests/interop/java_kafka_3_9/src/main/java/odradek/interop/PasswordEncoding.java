package odradek.interop;

import java.util.ArrayList;
import java.util.List;
import org.apache.kafka.common.config.types.Password;
import org.apache.kafka.security.PasswordEncoder;

/**
 * Kafka's own encoding of passwords for ZooKeeper.
 *
 * Arguments: encode or decode, the secret, key factory, cipher, key length, iterations, then texts.
 * Prints what became of each text on a line of its own.
 */
public final class PasswordEncoding {
    private PasswordEncoding() {}

    public static void main(String[] arguments) throws Exception {
        PasswordEncoder encoder = PasswordEncoder.encrypting(
            new Password(arguments[1]),
            arguments[2].isEmpty() ? null : arguments[2],
            arguments[3],
            Integer.parseInt(arguments[4]),
            Integer.parseInt(arguments[5]));
        List<String> lines = new ArrayList<>();
        for (int i = 6; i < arguments.length; i++)
            lines.add(arguments[0].equals("encode")
                ? encoder.encode(new Password(arguments[i]))
                : encoder.decode(arguments[i]).value());
        System.out.write((String.join("\n", lines) + "\n").getBytes("UTF-8"));
        System.out.flush();
    }
}
