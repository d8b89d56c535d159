import io.siddhi.core.SiddhiAppRuntime;
import io.siddhi.core.SiddhiManager;
import io.siddhi.core.event.Event;
import io.siddhi.core.stream.input.InputHandler;
import io.siddhi.core.stream.output.StreamCallback;
import java.io.BufferedReader;
import java.io.PrintWriter;
import java.nio.file.Files;
import java.nio.file.Path;

/** Workload K in SiddhiQL: java SiddhiJob EVENTS.csv MATCHES.csv. `every` begins a match at each t0; a step takes the first that fits. */
public class SiddhiJob {
    static final String APP =
            "@app:playback\n"  // time is that of the events
                    + "define stream events (type string, id long, k string);\n"
                    + "partition with (k of events) begin\n"
                    + "  from every a=events[type == 't0'] -> b=events[type == 't1'] -> c=events[type == 't2'] within 10 sec\n"
                    + "  select a.id as a, b.id as b, c.id as c insert into matches;\n"
                    + "end;";

    public static void main(String[] arguments) throws Exception {
        SiddhiManager manager = new SiddhiManager();
        SiddhiAppRuntime app = manager.createSiddhiAppRuntime(APP);
        try (PrintWriter out = new PrintWriter(Files.newBufferedWriter(Path.of(arguments[1])));
                BufferedReader in = Files.newBufferedReader(Path.of(arguments[0]))) {
            app.addCallback("matches", new StreamCallback() {
                @Override
                public void receive(Event[] events) {
                    for (Event event : events) {
                        Object[] ids = event.getData();
                        out.println(ids[0] + "," + ids[1] + "," + ids[2]);
                    }
                }
            });
            InputHandler input = app.getInputHandler("events");
            app.start();
            in.readLine();  // the header
            for (String line; (line = in.readLine()) != null; ) {
                String[] fields = line.split(",");
                input.send(Long.parseLong(fields[1]), new Object[] {fields[0], Long.parseLong(fields[2]), fields[3]});
            }
            app.shutdown();
        }
        manager.shutdown();
    }
}
