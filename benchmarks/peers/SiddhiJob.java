import io.siddhi.core.SiddhiAppRuntime;
import io.siddhi.core.SiddhiManager;
import io.siddhi.core.event.Event;
import io.siddhi.core.stream.input.InputHandler;
import io.siddhi.core.stream.output.StreamCallback;
import java.io.BufferedReader;
import java.io.PrintWriter;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;
import java.util.stream.Collectors;

/** A question in SiddhiQL: java SiddhiJob EVENTS.csv FOUND.csv QUERIES TYPE… There is a stream for each of these types. */
public class SiddhiJob {
    public static void main(String[] arguments) throws Exception {
        Set<String> types = new HashSet<>(Arrays.asList(arguments).subList(3, arguments.length));
        String streams = types.stream()
                .map(type -> "define stream " + type + " (time long, id long, k string, v double);\n")
                .collect(Collectors.joining());
        SiddhiManager manager = new SiddhiManager();
        // in playback, time is that of the events
        SiddhiAppRuntime app =
                manager.createSiddhiAppRuntime("@app:playback\n" + streams + Files.readString(Path.of(arguments[2])));
        try (PrintWriter out = new PrintWriter(Files.newBufferedWriter(Path.of(arguments[1])));
                BufferedReader in = Files.newBufferedReader(Path.of(arguments[0]))) {
            app.addCallback("found", new StreamCallback() {
                @Override
                public void receive(Event[] events) {
                    for (Event event : events) {
                        out.println(Arrays.stream(event.getData()).map(String::valueOf).collect(Collectors.joining(",")));
                    }
                }
            });
            Map<String, InputHandler> inputs = new HashMap<>();
            for (String type : types) {
                inputs.put(type, app.getInputHandler(type));
            }
            app.start();
            in.readLine();  // the header
            for (String line; (line = in.readLine()) != null; ) {
                String[] fields = line.split(",");
                InputHandler input = inputs.get(fields[0]);
                if (input != null) {
                    long time = Long.parseLong(fields[1]);
                    input.send(time, new Object[] {time, Long.parseLong(fields[2]), fields[3], Double.parseDouble(fields[4])});
                }
            }
            app.shutdown();
        }
        manager.shutdown();
    }
}
